"""What few bits cost in accuracy: `python -m benchmarks.weight_formats`, from the root.

The bundled prompts are answered greedily with float32 weights; then every type of weights tells its
logits for the same tokens. No clock is read.
"""

import argparse
from dataclasses import dataclass, replace

import torch
from rich.console import Console

from outrider.bench.target import tokenized, usable_cores
from outrider.bench.workload import bundled_workload
from outrider.engine.models.base import Rows, TargetModel, blocks_for
from outrider.engine.models.packing import PACKINGS
from outrider.engine.models.registry import load_model
from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.store import cache_directory, locate_model
from outrider.engine.tokenizer import Tokenizer
from outrider.engine.tokenizer_cache import kept_folder

from .tables import Table

REFERENCE = "float32"


@dataclass(frozen=True, slots=True)
class Answer:
    """Tokens of prompt and answer, where the answer begins, and float32 logits of its tokens."""

    token_ids: list[int]
    prompt_tokens: int
    log_probabilities: torch.Tensor


def main() -> None:
    """Compare every type of weights with float32, and print the table."""
    options = _options()
    progress = Console(stderr=True)
    cache_dir = cache_directory()
    files = locate_model(options.model, cache_dir=cache_dir, report=progress.print)
    tokenizer = Tokenizer(files.path, kept=kept_folder(cache_dir, files.sha256))
    prompts = tokenized(bundled_workload().prompts, tokenizer, options.max_tokens)
    longest = max(len(prompt.token_ids) + prompt.max_tokens for prompt in prompts)
    settings = ModelSettings(backend="fused", threads=usable_cores()).with_room(longest)

    reference = load_model(files.path, replace(settings, dtype=REFERENCE))
    answers = []
    for prompt in prompts:
        token_ids = _answer(reference, list(prompt.token_ids), prompt.max_tokens)
        told = _log_probabilities(reference, token_ids, len(prompt.token_ids))
        answers.append(Answer(token_ids, len(prompt.token_ids), told))
    rows = []
    for dtype, packing in PACKINGS.items():
        progress.print(dtype)
        model = (
            reference
            if dtype == REFERENCE
            else load_model(files.path, replace(settings, dtype=dtype))
        )
        size = packing.step_bytes(model.config) / 1e6
        rows.append((dtype, f"{size:.0f} MB", *_compared(model, answers)))
    tokens = sum(len(answer.token_ids) - answer.prompt_tokens for answer in answers)
    note = (
        f"{files.path.name}, {len(answers)} prompts, {tokens:,} tokens of the greedy answers with"
        f" {REFERENCE} weights. Same choice: the share of tokens where the likeliest is the same."
        " Divergence: KL from float32, mean over the tokens, in nats. Perplexity: of the answers."
    )
    header = ("weights", "read in a step", "same choice", "divergence", "perplexity")
    table = Table("Accuracy of weights in few bits", note, header, tuple(rows))
    table.tell(as_markdown=options.markdown)


def _compared(model: TargetModel, answers: list[Answer]) -> tuple[str, str, str]:
    """Share of equal choices, mean divergence, and perplexity, over all tokens of the answers."""
    equal, divergence, surprise, tokens = 0, 0.0, 0.0, 0
    for answer in answers:
        seen = _log_probabilities(model, answer.token_ids, answer.prompt_tokens)
        p = answer.log_probabilities
        equal += int((seen.argmax(-1) == p.argmax(-1)).sum())
        divergence += float((p.exp() * (p - seen)).sum())
        following = torch.tensor(answer.token_ids[answer.prompt_tokens :])
        surprise -= float(seen.gather(1, following.unsqueeze(1)).sum())
        tokens += len(following)
    perplexity = torch.tensor(surprise / tokens).exp().item()
    return f"{equal / tokens:.2%}", f"{divergence / tokens:.1e}", f"{perplexity:.4f}"


def _answer(model: TargetModel, token_ids: list[int], max_tokens: int) -> list[int]:
    """The prompt and its greedy answer, its end token included."""
    done = 0
    for _ in range(max_tokens):
        logits = _logits(model, token_ids, done, [len(token_ids) - done - 1])
        done = len(token_ids)
        token_ids = [*token_ids, int(logits.argmax())]
        if token_ids[-1] in model.config.eos_token_ids:
            break
    return token_ids


def _log_probabilities(
    model: TargetModel, token_ids: list[int], prompt_tokens: int
) -> torch.Tensor:
    """What the model gives every token of the vocabulary, for each token of the answer."""
    wanted = range(prompt_tokens - 1, len(token_ids) - 1)
    return _logits(model, token_ids, 0, list(wanted)).log_softmax(-1)


def _logits(
    model: TargetModel, token_ids: list[int], start: int, wanted: list[int]
) -> torch.Tensor:
    count = len(token_ids) - start
    blocks = range(blocks_for(len(token_ids)))
    positions = range(start, len(token_ids))
    return model.forward(Rows(token_ids[start:], positions, [0] * count, [blocks], wanted)).clone()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.weight_formats", description=__doc__
    )
    parser.add_argument("model", nargs="?", default="smollm2-135m", help="[smollm2-135m]")
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--markdown", action="store_true", help="the table for docs/performance.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
