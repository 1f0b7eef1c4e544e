"""The lines beside those of a vLLM server's log."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.metrics.serving import decoded

from outrider.server.metrics.engine_load import EngineLoad
from outrider.server.metrics.interval_log import IntervalLog
from outrider.server.metrics.serving_totals import ServingTotals, Snapshot
from outrider.server.metrics.speculation_counts import SpeculationCounts

LOG = (Path(__file__).parents[2] / "records" / "cases" / "logs" / "vllm-0.32-ngram.log").read_text()
ENGINE_LINES = re.findall(r"Engine 000: Avg.*", LOG)
SPECULATION_LINES = re.findall(r"SpecDecoding metrics: .*", LOG)


class Told:
    """Counts that a test sets, and a log of them that began at 0 s."""

    def __init__(self, k: int = 3, device: str = "GPU") -> None:
        self.totals = ServingTotals(SpeculationCounts(k) if k else None)
        self.load = EngineLoad()
        self.hit_rate = 0.0
        self.log = IntervalLog(self.read, now=0.0, device=device)

    def read(self) -> Snapshot:
        return Snapshot(self.totals.copy(), self.load, self.hit_rate)

    def verify(self, drafted: int, accepted: int) -> None:
        """Count a verification step and its tokens."""
        self.totals.add(decoded(drafted, accepted))
        self.totals.generation_tokens += accepted + 1


def numbers(line: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", line)


@pytest.mark.parametrize("captured", ENGINE_LINES)
def test_the_engines_line_is_vllms_for_the_same_numbers(captured: str) -> None:
    _, prompt, generation, running, waiting, usage, hits = numbers(captured)
    told = Told(device="CPU")
    told.verify(1, 0)
    told.log.turn(0.0)
    told.totals.prompt_tokens = round(float(prompt) * 10) + 400
    told.totals.cached_tokens = 400
    told.totals.generation_tokens += round(float(generation) * 10)
    told.load = EngineLoad(int(running), int(waiting), float(usage) / 100)
    told.hit_rate = float(hits) / 100
    assert told.log.lines(10.0) == (captured,)


@pytest.mark.parametrize("captured", SPECULATION_LINES)
def test_the_line_of_speculation_is_vllms_for_the_same_steps(captured: str) -> None:
    """Steps are in no line; every number of them is tried that could give the printed mean."""
    mean, accepted_rate, drafted_rate, accepted_text, drafted_text, *rates, _ = numbers(captured)
    accepted, drafted = int(accepted_text), int(drafted_text)
    near = range(-(-drafted // 3), drafted + 1)
    fitting = (n for n in near if f"{1 + accepted / n:.2f}" == mean)
    found = set()
    for steps in fitting:
        told = Told()
        counts = [round(float(rate) * steps) for rate in rates]
        if sum(counts) != accepted:
            continue
        told.totals.speculation = with_positions(steps, counts, drafted)
        # The interval was not quite 10 s; both rates tell how long.
        for offset in range(-60, 61):
            elapsed = drafted / float(drafted_rate) + offset * 1e-4
            found |= set(told.log.lines(elapsed))
    assert captured in found
    assert float(accepted_rate) <= float(drafted_rate)


def with_positions(steps: int, reached: list[int], drafted: int) -> SpeculationCounts:
    """Steps of which `reached[r]` accepted position r, and some drafts of `drafted` tokens."""
    counts = SpeculationCounts(len(reached))
    tail = [steps, *reached, 0]
    counts.by_accepted = [here - after for here, after in pairwise(tail)]
    longest, rest = divmod(drafted, len(reached))
    counts.by_drafted[len(reached)] = longest
    counts.by_drafted[rest] += 1
    return counts


def test_asking_for_the_lines_changes_nothing_and_a_turn_begins_anew() -> None:
    told = Told()
    told.verify(3, 2)
    lines = told.log.lines(10.0)
    assert told.log.lines(10.0) == lines
    assert told.log.turn(10.0) == lines
    assert len(lines) == 2
    told.verify(2, 0)
    assert "Accepted: 0 tokens, Drafted: 2 tokens" in told.log.lines(20.0)[1]


def test_an_idle_interval_is_told_once() -> None:
    told = Told()
    assert told.log.turn(10.0) == ()
    told.verify(3, 2)
    assert len(told.log.turn(20.0)) == 2
    (line,) = told.log.turn(30.0)
    assert "Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s" in line
    assert told.log.turn(40.0) == ()
    told.totals.prompt_tokens += 5
    assert len(told.log.turn(50.0)) == 1


def test_nothing_is_said_of_speculation_where_no_step_was_counted() -> None:
    told = Told()
    told.verify(0, 0)
    (line,) = told.log.turn(10.0)
    assert line.startswith("Engine 000")
    plain = Told(k=0)
    plain.totals.generation_tokens = 1
    assert len(plain.log.turn(10.0)) == 1


def test_throughput_of_speculation_is_over_the_time_since_its_last_line() -> None:
    told = Told()
    told.totals.generation_tokens += 1
    told.log.turn(10.0)
    told.verify(3, 2)
    line, speculation = told.log.turn(20.0)
    assert "Avg generation throughput: 0.3 tokens/s" in line
    assert "Accepted throughput: 0.10 tokens/s, Drafted throughput: 0.15 tokens/s" in speculation
    told.verify(3, 2)
    assert "Accepted throughput: 0.20 tokens/s" in told.log.lines(30.0)[1]


def test_an_interval_of_no_length_has_no_throughput() -> None:
    told = Told()
    told.verify(3, 2)
    assert "Avg generation throughput: 0.0 tokens/s" in told.log.lines(0.0)[0]


@given(st.lists(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3)), max_size=9), max_size=6))
def test_the_tokens_of_all_intervals_add_up(intervals: list[list[tuple[int, int]]]) -> None:
    told, drafted = Told(), 0
    for number, steps in enumerate(intervals, 1):
        for length, accepted in steps:
            told.verify(length, min(length, accepted))
        for line in told.log.turn(10.0 * number):
            found = re.search(r"Drafted: (\d+) tokens", line)
            drafted += int(found[1]) if found else 0
    assert drafted == sum(length for steps in intervals for length, _ in steps)
