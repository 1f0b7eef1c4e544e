"""What a step of lookup drafting costs: `python -m benchmarks.lookup_cost`, from the root.

Microseconds for one request to catch up with 1 to 5 new tokens and to draft again, at contexts of
100 to 100,000 tokens: the n-gram index, a search of the whole text as before there was one, and
suffix decoding. In each round all contexts and drafters, in another order; a measurement is the
mean over `STEPS` steps, in a text that goes on repeating pieces of itself.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from outrider.engine.compiling import compiled
from outrider.engine.drafting.lookup.ngram_index import NgramIndex
from outrider.engine.drafting.lookup.suffix_cache import SuffixCache
from outrider.engine.drafting.lookup.suffix_settings import SuffixSettings

from .rounds import Spread
from .tables import Table, spread_text

CONTEXTS = (100, 1_000, 10_000, 100_000)
RUNS = (1, 3, 5)
STEPS = 200
K = 8
SHORTEST, LONGEST = 2, 5

Tokens = NDArray[np.int32]
Step = Callable[[Tokens], object]


@compiled()
def search(tokens: Tokens, room: Tokens, shortest: int, longest: int) -> int:
    """Try every place from the end: the longest match, of equals the most recent."""
    last = tokens.size - 1
    best, match = shortest - 1, last
    for end in range(last - 1, -1, -1):
        length = 0
        while length < longest and length <= end and tokens[end - length] == tokens[last - length]:
            length += 1
        if length > best:
            best, match = length, end
            if best == longest:
                break
    drafted = min(room.size, last - match)
    for at in range(drafted):
        room[at] = tokens[match + 1 + at]
    return drafted


def text(tokens: int, *, novel: float, seed: int) -> Tokens:
    """Random tokens of 49,152, and among them pieces of what was there before."""
    rng = np.random.default_rng(seed)
    made = rng.integers(0, 49_152, tokens).astype(np.int32)
    at = 50
    while at < tokens:
        length = int(rng.integers(2, 30))
        if rng.random() > novel:
            start = int(rng.integers(0, max(1, at - length)))
            piece = made[start : start + min(length, tokens - at)].copy()
            made[at : at + len(piece)] = piece
        at += length
    return made


def drafters(tokens: Tokens, context: int) -> dict[str, Step]:
    """Each with the first `context` of `tokens` known."""
    room = np.empty(K, np.int32)
    index = NgramIndex.of(tokens[:context], LONGEST)
    cache = SuffixCache(SuffixSettings())
    request = cache.begin("r", context)
    cache.extend(request, tokens[:context])
    return {
        "n-gram index": lambda seen: index.draft(seen, room, SHORTEST, LONGEST, earliest=False),
        "n-gram search": lambda seen: search(seen, room, SHORTEST, LONGEST),
        "suffix decoding": lambda seen: cache.draft(request, seen, room),
    }


def step_us(step: Step, tokens: Tokens, context: int, run: int) -> float:
    """The mean over `STEPS` steps of `run` tokens each."""
    ends = [context + run * (i + 1) for i in range(STEPS)]
    start = time.perf_counter()
    for end in ends:
        step(tokens[:end])
    return 1e6 * (time.perf_counter() - start) / STEPS


def measure(rounds: int) -> dict[tuple[str, int, int], Spread]:
    """Microseconds by drafter, context and new tokens a step."""
    taken: dict[tuple[str, int, int], list[float]] = {}
    rng = np.random.default_rng(0)
    for round_ in range(-1, rounds):
        for place in rng.permutation(len(CONTEXTS) * len(RUNS)).tolist():
            context, run = CONTEXTS[place // len(RUNS)], RUNS[place % len(RUNS)]
            tokens = text(context + STEPS * run, novel=0.5, seed=place)
            for name, step in drafters(tokens, context).items():
                seconds = step_us(step, tokens, context, run)
                if round_ >= 0:
                    taken.setdefault((name, context, run), []).append(seconds)
    return {key: Spread.of(values) for key, values in taken.items()}


def table(costs: dict[tuple[str, int, int], Spread]) -> Table:
    """A row for each drafter and number of new tokens, a column for each context."""
    names = dict.fromkeys(name for name, _, _ in sorted(costs))
    return Table(
        "A step of lookup drafting",
        f"Microseconds per step and request, median (least to greatest); K = {K}, n-grams of"
        f" {SHORTEST} to {LONGEST}.",
        ("drafter", "new tokens", *(f"{context:,} tokens" for context in CONTEXTS)),
        tuple(
            (name, str(run), *(spread_text(costs[name, context, run], 1) for context in CONTEXTS))
            for name in names
            for run in RUNS
        ),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    result = table(measure(arguments.rounds))
    if arguments.markdown:
        print(result.markdown())
    else:
        result.show(Console())


if __name__ == "__main__":
    main()
