"""How fast logged answers are replayed, beside loops that ask a drafter step by step.

    python -m benchmarks.replay_speed LOG.jsonl [--tokens 500000] [--rounds 5] [--arctic PYTHON]
        [--vllm PYTHON]

The log has token ids, see docs/replay.md. For n-gram lookup, which looks at one answer alone, it is
repeated until there are so many output tokens; suffix decoding, which learns, gets it once. Round
by round, on one core: n-gram lookup at K = 5, and at K = 1 to 16 together; suffix decoding at
K = 5, with and without a cache of earlier answers, and at K = 1 to 16 together; loops that call the
engine's own structures from Python at each step. With `--arctic`, an interpreter that has
arctic-inference 0.3.0 runs the same loop with that, with `--vllm` one that has vLLM calls its
n-gram search; their steps must be the same. Prints output tokens per second, medians with their
range; what is compiled was so before. Reading the log is timed on its own.
"""

import argparse
import io
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx2
import numpy as np
from benchmarks.replay_peers import ARCTIC, VLLM, peer_steps

from outrider.engine.drafting.lookup.ngram_index import NgramIndex
from outrider.engine.drafting.lookup.suffix_cache import SuffixCache
from outrider.engine.drafting.lookup.suffix_settings import SuffixSettings
from outrider.replay.answer import LoggedAnswer
from outrider.replay.batch import AnswerBatch
from outrider.replay.logs.reading import LogReader
from outrider.replay.lookup.base import LookupSetting
from outrider.replay.lookup.ngram import NgramPass
from outrider.replay.lookup.suffix import SuffixSetting
from outrider.replay.rows import sums_of
from outrider.replay.walk import tally

K = 5
EVERY_K = tuple(range(1, 17))
Steps = list[tuple[int, int]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("--tokens", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--arctic", type=Path)
    parser.add_argument("--vllm", type=Path)
    asked = parser.parse_args()
    answers = read(asked.log)
    batch, long = AnswerBatch.of(answers), AnswerBatch.of(repeated(answers, asked.tokens))
    ngram = NgramPass(2, 5, "recent")
    cached, alone = (
        SuffixSetting(SuffixSettings(max_cached_requests=size)) for size in (10_000, 0)
    )
    named: list[tuple[str, AnswerBatch, Callable[[AnswerBatch], object]]] = [
        (f"n-gram, K = {K}", long, lambda log: replay(ngram, log, (K,))),
        ("n-gram, K = 1 to 16", long, lambda log: replay(ngram, log, EVERY_K)),
        ("n-gram, a call per step from Python", batch, ngram_loop),
        (f"suffix, K = {K}", batch, lambda log: replay(cached, log, (K,))),
        (f"suffix, K = {K}, own text only", batch, lambda log: replay(alone, log, (K,))),
        ("suffix, K = 1 to 16", batch, lambda log: replay(cached, log, EVERY_K)),
        ("suffix, a call per step from Python", batch, lambda log: suffix_loop(log, 10_000)),
    ]
    for _, log, run in named:
        run(log)
    speeds: dict[str, list[float]] = {}
    for _ in range(asked.rounds):
        for name, log, run in named:
            begin = time.perf_counter()
            run(log)
            speeds.setdefault(name, []).append(outputs(log) / (time.perf_counter() - begin))
        for name, seconds in peers(batch, asked.arctic, asked.vllm):
            speeds.setdefault(name, []).append(outputs(batch) / seconds)
    for name, each in speeds.items():
        low, high = min(each), max(each)
        print(f"{name:38} {statistics.median(each):>12,.0f} tokens/s ({low:,.0f} to {high:,.0f})")


def outputs(batch: AnswerBatch) -> int:
    """Return the output tokens of a batch."""
    return int(batch.completion_lengths.sum())


def read(path: Path) -> list[LoggedAnswer]:
    """Read a log and tell how fast that was."""
    begin = time.perf_counter()
    with httpx2.Client() as http:
        found = [
            each
            for _, each in LogReader().read([str(path)], stdin=io.BytesIO(), http=http)
            if isinstance(each, LoggedAnswer)
        ]
    tokens = sum(len(each.prompt) + len(each.completion) for each in found)
    seconds = time.perf_counter() - begin
    told = sum(len(each.completion) for each in found)
    print(f"{len(found):,} answers, {told:,} output tokens, {tokens:,} in all")
    print(f"{'reading, prompts too':38} {tokens / seconds:>12,.0f} tokens/s")
    return found


def repeated(answers: Sequence[LoggedAnswer], tokens: int) -> list[LoggedAnswer]:
    """Return the answers as often as it takes to have so many output tokens."""
    once = sum(len(each.completion) for each in answers)
    return [*answers] * max(1, round(tokens / once))


def replay(setting: LookupSetting, batch: AnswerBatch, ks: tuple[int, ...]) -> None:
    """Replay everything as the command does, up to the sums of each answer."""
    runs = setting.start().runs(batch, ks)
    for place, k in enumerate(ks):
        sums_of(batch, tally(batch, runs, place, k))


def ngram_loop(batch: AnswerBatch, *, earliest: bool = False) -> Steps:
    """Ask the engine's index before each step."""
    told, room = [], np.empty(K, np.int32)
    for answer in range(len(batch.answers)):
        start, end = batch.starts[answer], batch.starts[answer + 1]
        index, tokens = NgramIndex(5), batch.tokens[start:end]
        at = int(batch.outputs[answer] - start) + 1
        while at < len(tokens):
            drafted = index.draft(tokens[:at], room, 2, 5, earliest=earliest)
            told.append(judged(room, drafted, tokens, at))
            at += told[-1][1] + 1
    return told


def suffix_loop(batch: AnswerBatch, size: int) -> Steps:
    """Ask the engine's suffix cache before each step."""
    told, room = [], np.empty(K, np.int32)
    cache = SuffixCache(SuffixSettings(max_cached_requests=size))
    for answer in range(len(batch.answers)):
        start, end = batch.starts[answer], batch.starts[answer + 1]
        prompt, tokens = int(batch.outputs[answer] - start), batch.tokens[start:end]
        request, at = cache.begin(answer, prompt), prompt + 1
        while at < len(tokens):
            drafted = cache.draft(request, tokens[:at], room)[0]
            told.append(judged(room, drafted, tokens, at))
            at += told[-1][1] + 1
        cache.extend(request, tokens)
        cache.end(request)
    return told


def judged(
    room: "np.typing.NDArray[np.int32]",
    drafted: int,
    tokens: "np.typing.NDArray[np.int32]",
    at: int,
) -> tuple[int, int]:
    """Return how much of a draft the log goes on with."""
    accepted = 0
    while accepted < drafted and at + accepted < len(tokens):
        if room[accepted] != tokens[at + accepted]:
            break
        accepted += 1
    return drafted, accepted


def peers(
    batch: AnswerBatch, arctic: Path | None, vllm: Path | None
) -> Iterator[tuple[str, float]]:
    """Yield name and seconds of each loop around a peer, whose steps must be those of ours."""
    if arctic is not None:
        for size, label in ((10_000, ""), (0, ", own text only")):
            steps, seconds = peer_steps(batch, arctic, ARCTIC, K, size)
            assert np.array_equal(steps, suffix_loop(batch, size)), "the drafts differ"
            yield f"arctic-inference loop{label}", seconds
    if vllm is not None:
        steps, seconds = peer_steps(batch, vllm, VLLM, K)
        assert np.array_equal(steps, ngram_loop(batch, earliest=True)), "the drafts differ"
        yield "vLLM n-gram search, a call per step", seconds


if __name__ == "__main__":
    main()
