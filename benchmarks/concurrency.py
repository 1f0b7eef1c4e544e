"""Several streams at once: `python -m benchmarks.concurrency`, from the repository's root.

Total tokens per second at each number of streams, without speculation, at fixed draft lengths and
with adaptive verification, all of them in each round; the share of a step that is not the target's;
and the time to the first token of a long prompt beside transformers.
"""

import argparse
import math
import statistics
import time
from collections.abc import Mapping
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import psutil
import torch
from rich.console import Console

from outrider.bench.target import tokenized, usable_cores
from outrider.bench.workload import bundled_workload, quick_subset
from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.profiling import profile_steps
from outrider.engine.adaptive.verification import AdaptiveVerification
from outrider.engine.models.base import Rows, TargetModel
from outrider.engine.models.packing import PACKINGS
from outrider.engine.models.registry import load_model
from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.store import cache_directory, locate_model
from outrider.engine.tokenizer import Tokenizer
from outrider.engine.tokenizer_cache import kept_folder
from outrider.records.prompt import PromptRecord
from outrider.server.speculation.opened_draft import ModelToPair

from .decoding import pretrained
from .drafters import MakeDrafter, draft_model, ngram
from .passes import ROUNDS as PASS_ROUNDS
from .passes import Pass, TimedModel, TypicalPasses
from .rounds import (
    FEWEST_ROUNDS,
    Spread,
    Variant,
    interleaved,
    median_interval,
    milliseconds,
    paired,
    paired_ratio,
)
from .streams import DRAFT, TARGET, Arm
from .tables import Table, spread_text

MOST_STREAMS = 16
NO_SPECULATION = "no speculation"
ADAPTIVE = "adaptive"
ADAPTIVE_K = 8
PROMPTS_PER_STREAM = 3
MIN_PROMPTS = 8
"""The least number of prompts in one measurement."""
PROMPT_TOKENS = 1_000
LONGEST = 1_024


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for; `fixed_k` are draft lengths beside none and adaptive."""

    rounds: int
    streams: Sequence_[int]
    fixed_k: Sequence_[int]
    first_token_rounds: int
    max_tokens: int
    dtype: str
    markdown: bool
    draft: str | None

    @property
    def drafter(self) -> str:
        """What drafts, in words."""
        return "n-gram lookup (2 to 4 tokens)" if self.draft is None else f"{self.draft} drafts"


def measure_streams(
    model: TimedModel,
    make_drafter: MakeDrafter,
    prompts: Sequence_[PromptRecord],
    typical: TypicalPasses,
    at_start: CostCurve,
    options: Options,
) -> Table:
    """Serve the same prompts in every way, in turn, at each number of streams.

    By the passes each takes what is `typical` of it; adaptive verification begins with what a
    server knows `at_start`.
    """
    rows: list[tuple[str, ...]] = []
    for streams in options.streams:
        count = max(PROMPTS_PER_STREAM * streams, MIN_PROMPTS)
        served = tuple(islice(cycle(prompts), count))
        arms = {NO_SPECULATION: Arm(model, make_drafter, 0)}
        arms |= {f"K = {k}": Arm(model, make_drafter, k) for k in options.fixed_k}
        choosing = AdaptiveVerification(at_start, ADAPTIVE_K)
        arms[ADAPTIVE] = Arm(model, make_drafter, ADAPTIVE_K, choosing)
        interleaved(
            {name: Variant(partial(arm.measure, served, streams)) for name, arm in arms.items()},
            rounds=options.rounds,
            budget_s=math.inf,
        )
        rows += [
            (str(streams), name, *figures) for name, figures in _figures(arms, typical).items()
        ]
    note = (
        f"Greedy; {PROMPTS_PER_STREAM} of the bundled prompts for each stream, at least"
        f" {MIN_PROMPTS}, the next begins as one ends; {options.drafter}. Output tokens per second"
        " of all streams together, over the steps of that many streams that read no prompt; median"
        f" (min–max) of {options.rounds} rounds, the ratio paired by round. Adaptive: its tokens/s"
        " against this arm's, the median of the rounds and its 95 % bootstrap interval. By the"
        " passes: the same two if each pass of the target and of a draft model had taken what"
        f" passes of its size took before, median of {PASS_ROUNDS} rounds of all sizes brought to"
        " one speed, with the tokens that it attends to; whatever is no pass keeps its measured"
        " share. Choice: the share of the time"
        " that verification takes, whatever reads all logits included; rest: drafting, scheduling"
        " and recording. Same tokens: as without speculation, in the last round."
    )
    header = (
        *("streams", "arm", "tokens/s", "against none", "adaptive"),
        *("by the passes: against none", "adaptive", "choice", "rest", "same tokens"),
    )
    return Table("Several streams at once", note, header, tuple(rows))


def _figures(arms: Mapping[str, Arm], typical: TypicalPasses) -> dict[str, tuple[str, ...]]:
    """What the table says of each arm; the first round is warm-up."""
    rounds = {name: arm.rounds[1:] for name, arm in arms.items()}
    clock = {name: [one.rate for one in of_arm] for name, of_arm in rounds.items()}
    passes = {
        name: [one.typical_rate(typical) for one in of_arm] for name, of_arm in rounds.items()
    }

    def ratios(rates: Mapping[str, list[float]], name: str) -> tuple[str, str]:
        """Of this arm to none, and of adaptive verification to it."""
        gained = paired(rates[ADAPTIVE], rates[name])
        return (
            spread_text(paired_ratio(rates[name], rates[NO_SPECULATION]), 2),
            "–" if name == ADAPTIVE else spread_text(median_interval(gained), 3),
        )

    return {
        name: (
            spread_text(Spread.of(clock[name]), 1),
            *ratios(clock, name),
            *ratios(passes, name),
            f"{100 * statistics.median(one.verifying for one in of_arm):.1f} %",
            f"{100 * statistics.median(one.rest for one in of_arm):.1f} %",
            "yes" if arms[name].outputs == arms[NO_SPECULATION].outputs else "no",
        )
        for name, of_arm in rounds.items()
    }


def measure_first_token(path: Path, model: TargetModel, *, threads: int, rounds: int) -> Table:
    """The time that a prompt of `PROMPT_TOKENS` takes until its first token."""
    references = pretrained(path)
    tokens = [(7 * i) % 40_000 + 100 for i in range(PROMPT_TOKENS)]
    blocks = range(model.num_blocks)
    rows = Rows(tokens, range(len(tokens)), [0] * len(tokens), [blocks], [len(tokens) - 1])
    prompt = torch.tensor([tokens])

    @torch.inference_mode()
    def transformers(dtype: str) -> object:
        return references[dtype](prompt, logits_to_keep=1).logits.argmax()

    seconds = interleaved(
        {
            "outrider": Variant(lambda: model.forward(rows).argmax()),
            **{
                f"transformers {dtype}": Variant(partial(transformers, dtype), threads)
                for dtype in references
            },
        },
        rounds=rounds,
        budget_s=math.inf,
    )
    table = tuple(
        (
            name,
            spread_text(milliseconds(seconds[name]), 0),
            spread_text(paired_ratio(seconds[name], seconds["outrider"]), 2),
        )
        for name in seconds
    )
    note = (
        f"A prompt of {PROMPT_TOKENS:,} tokens, nothing cached; median (min–max) of {rounds}"
        " rounds, the ratio paired by round."
    )
    return Table("Time to the first token", note, ("system", "ms", "ratio"), table)


def main() -> None:
    """Runs both parts and prints their tables."""
    options = _options()
    progress = Console(stderr=True)
    threads = usable_cores()
    busy = psutil.cpu_percent(interval=1.0)
    cache_dir = cache_directory()
    files = locate_model("smollm2-135m", cache_dir=cache_dir, report=progress.print)
    tokenizer = Tokenizer(files.path, kept=kept_folder(cache_dir, files.sha256))
    bundled = bundled_workload().prompts
    of_each_kind_in_turn = quick_subset(bundled, len(bundled))
    prompts = tokenized(of_each_kind_in_turn, tokenizer, options.max_tokens)
    settings = ModelSettings(backend="fused", dtype=options.dtype, threads=threads)
    settings = settings.with_room(LONGEST, MOST_STREAMS)
    model = load_model(files.path, settings)
    passes: list[Pass] = []
    make_drafter: MakeDrafter = ngram
    models: dict[str, TargetModel] = {TARGET: model}

    def watched(draft: TargetModel) -> TargetModel:
        models[DRAFT] = draft
        return TimedModel(draft, DRAFT, passes)

    if options.draft is not None:
        make_drafter = draft_model(
            options.draft,
            model,
            ModelToPair("smollm2-135m", files.path, tokenizer),
            settings,
            say=progress.print,
            watched=watched,
        )
    progress.print("profiling steps")
    most_rows = MOST_STREAMS * (ADAPTIVE_K + 1)
    at_start = profile_steps(model, most_rows=most_rows, clock=time.perf_counter)
    print(f"{options.dtype}, {threads} threads; other processes had {busy:.0f}% at the start.\n")

    progress.print("streams")
    typical = TypicalPasses.timed(models)
    timed = TimedModel(model, TARGET, passes)
    streams = measure_streams(timed, make_drafter, prompts, typical, at_start, options)
    streams.tell(as_markdown=options.markdown)
    if options.first_token_rounds:
        progress.print("first token")
        first = measure_first_token(
            files.path, model, threads=threads, rounds=options.first_token_rounds
        )
        first.tell(as_markdown=options.markdown)


def _options() -> Options:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.concurrency", description=__doc__)
    number_of_streams = range(1, MOST_STREAMS + 1)
    parser.add_argument("--rounds", type=int, default=3, help=f"at least {FEWEST_ROUNDS}")
    parser.add_argument(
        "--streams", type=int, nargs="+", default=[1, 4, 16], choices=number_of_streams, metavar="N"
    )
    parser.add_argument(
        "--fixed-k", type=int, nargs="*", default=[1, 2, 4, 8], choices=range(1, 17), metavar="K"
    )
    parser.add_argument("--draft", metavar="MODEL", help="a draft model in place of n-gram lookup")
    parser.add_argument("--first-token-rounds", type=int, default=9, help="0 leaves that part out")
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--dtype", default="bfloat16", choices=tuple(PACKINGS))
    parser.add_argument("--markdown", action="store_true", help="tables for docs/performance.md")
    options = Options(**vars(parser.parse_args()))
    if options.rounds < FEWEST_ROUNDS:
        parser.error(f"--rounds is {options.rounds}, but an interval takes {FEWEST_ROUNDS} or more")
    return options


if __name__ == "__main__":
    main()
