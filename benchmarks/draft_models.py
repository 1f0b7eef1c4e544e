"""What a draft model is worth: `python -m benchmarks.draft_models TARGET DRAFT`, from the root.

The same prompts with and without drafts, greedy, in turn, with one copy of the weights. TARGET and
DRAFT are named as in `outrider serve`; with another tokenizer only shared tokens are drafted.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import psutil
from rich.console import Console

from outrider.bench.target import stop_ids, tokenized, usable_cores
from outrider.bench.workload import bundled_workload, quick_subset, read_workload
from outrider.engine.caching.cache import BlockCache
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.engine import Engine
from outrider.engine.models.packing import PACKINGS
from outrider.engine.models.store import cache_directory, locate_model
from outrider.engine.recorder import StepRecorder
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.scheduling.limits import Limits
from outrider.engine.scheduling.scheduler import Scheduler
from outrider.engine.sequence import Sequence as RunningSequence
from outrider.engine.tokenizer import Tokenizer
from outrider.engine.tokenizer_cache import kept_folder
from outrider.records.prompt import PromptRecord
from outrider.records.request import StepRecord
from outrider.server.service.building import EngineSettings, build_engine
from outrider.server.serving import open_draft
from outrider.server.speculation.config import SpeculativeConfig
from outrider.server.speculation.opened_draft import ModelToPair
from outrider.server.speculation.resolving import resolve
from outrider.server.speculation.target_facts import TargetFacts

from .tables import Table


@dataclass(frozen=True, slots=True)
class Answers:
    """What one way of answering gave."""

    tokens: list[list[int]]
    steps: list[StepRecord]
    seconds: float

    @property
    def rate(self) -> float:
        """Output tokens per second, prefill included."""
        return sum(map(len, self.tokens)) / self.seconds


def answer(
    engine: Engine, prompts: Sequence[PromptRecord], ends: frozenset[int], recorder: StepRecorder
) -> Answers:
    """Answer all prompts, as many at once as the engine's limits allow."""
    sequences = [
        RunningSequence(
            prompt.prompt_id,
            prompt.token_ids,
            max_tokens=prompt.max_tokens,
            sampling=Sampling.seeded(SamplingParameters(), end_token_ids=ends),
            end_token_ids=ends,
        )
        for prompt in prompts
    ]
    began = time.perf_counter()
    for sequence in sequences:
        engine.add(sequence)
    while engine.busy:
        engine.step()
    seconds = time.perf_counter() - began
    steps = [step for each in sequences for step in recorder.take(each).steps]
    return Answers([each.output_token_ids.tolist() for each in sequences], steps, seconds)


def measure(options: argparse.Namespace, say: Callable[[str], None]) -> Table:
    """Answer the same prompts both ways, once to warm up and `rounds` times in turn."""
    cache_dir = cache_directory()
    files = locate_model(options.target, cache_dir=cache_dir, report=say)
    tokenizer = Tokenizer(files.path, kept=kept_folder(cache_dir, files.sha256))
    config = SpeculativeConfig(
        method="draft_model",
        model=options.draft,
        num_speculative_tokens=options.k,
        use_heterogeneous_vocab=options.use_heterogeneous_vocab,
    )
    speculation = resolve(config, TargetFacts(options.target))
    side = ModelToPair(options.target, files.path, tokenizer)
    draft = open_draft(speculation, side, cache_dir, say=say)
    limits = Limits(options.together, 2048)
    settings = EngineSettings(
        dtype=options.dtype,
        threads=options.threads,
        max_model_len=2048,
        prefix_caching=False,
        limits=limits,
    )
    built = build_engine(files, settings, speculation, draft=draft, model_name=options.target)
    workload = bundled_workload() if options.prompts is None else read_workload(options.prompts)
    chosen = quick_subset(workload.prompts, options.count)
    prompts = tokenized(chosen, tokenizer, options.max_tokens)
    ends = stop_ids(built.engine.loop.model, tokenizer)
    recorder = StepRecorder()
    drafting = replace(built.engine.loop, recorder=recorder)
    engines = {
        "none": Engine(
            replace(drafting, drafter=NoDrafter(), k=0),
            Scheduler(BlockCache(drafting.model.num_blocks), limits),
        ),
        "draft model": Engine(drafting, Scheduler(BlockCache(drafting.model.num_blocks), limits)),
    }
    for engine in engines.values():
        answer(engine, prompts[:2], ends, recorder)
    rounds = [
        {name: answer(engine, prompts, ends, recorder) for name, engine in engines.items()}
        for _ in range(options.rounds)
    ]
    return _table(options, rounds)


def _table(options: argparse.Namespace, rounds: list[dict[str, Answers]]) -> Table:
    plain, drafted = rounds[0]["none"], rounds[0]["draft model"]
    speculative = [step for step in drafted.steps if step.drafted]
    accepted, offered = (
        sum(getattr(step, name) for step in speculative) for name in ("accepted", "drafted")
    )
    histogram = [
        sum(step.accepted == count for step in speculative) for count in range(options.k + 1)
    ]
    rates = {name: [each[name].rate for each in rounds] for name in ("none", "draft model")}
    rows = (
        ("same tokens", "yes" if plain.tokens == drafted.tokens else "NO"),
        ("steps with a draft", str(len(speculative))),
        ("mean acceptance length (M)", f"{1 + accepted / len(speculative):.2f}"),
        ("draft acceptance rate (A/D)", f"{accepted / offered:.1%}"),
        ("acceptance histogram", " ".join(map(str, histogram))),
        ("drafting, mean ms a step", f"{1e3 * mean(step.draft_s for step in speculative):.0f}"),
        ("step with a draft, mean ms", f"{1e3 * mean(step.step_s for step in speculative):.0f}"),
        ("plain step, mean ms", f"{1e3 * mean(step.step_s for step in plain.steps):.0f}"),
        ("tokens/s without drafts", " ".join(f"{rate:.1f}" for rate in rates["none"])),
        ("tokens/s with drafts", " ".join(f"{rate:.1f}" for rate in rates["draft model"])),
    )
    note = (
        f"{len(plain.tokens)} prompts, {options.together} at once, greedy, K = {options.k}, up to"
        f" {options.max_tokens} tokens; {options.dtype}, {options.threads} threads."
    )
    title = f"{Path(options.draft).name} drafts for {Path(options.target).name}"
    return Table(title, note, ("figure", "value"), rows)


def main() -> None:
    """Measures and prints a table."""
    options = _options()
    progress = Console(stderr=True, soft_wrap=True)
    print(f"Other processes had {psutil.cpu_percent(interval=1.0):.0f}% at the start.\n")
    table = measure(options, progress.print)
    table.tell(as_markdown=options.markdown)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.draft_models", description=__doc__)
    parser.add_argument("target")
    parser.add_argument("draft")
    parser.add_argument("--use-heterogeneous-vocab", action="store_true")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--prompts", type=Path, help="JSON lines; by default those of the package")
    parser.add_argument("--count", type=int, default=24, help="how many of them, kinds in turn")
    parser.add_argument("--together", type=int, default=1)
    parser.add_argument("--max-tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--dtype", default="bfloat16", choices=tuple(PACKINGS))
    parser.add_argument("--markdown", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
