from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.adapters.vllm_log import VllmLogAdapter
from outrider.records.collecting import Collection
from outrider.records.reading import (
    AcceptanceRecord,
    BadRecord,
    NoMetrics,
    Place,
    Reading,
    Scope,
)
from outrider.records.sources.document import JsonDocument, TextDocument
from outrider.records.validation import validated

CASES = Path(__file__).parents[1] / "cases"
LOG = (CASES / "logs" / "vllm-0.32-ngram.log").read_text()
ADAPTER = VllmLogAdapter()


def document(text: str) -> TextDocument:
    return TextDocument(Place("log"), text[: 64 << 10], lambda: enumerate(text.split("\n"), 1))


def readings(text: str) -> list[Reading | Collection]:
    return [reading for _, reading in ADAPTER.convert(document(text))]


def only(text: str) -> AcceptanceRecord:
    (reading,) = readings(text)
    assert isinstance(reading, AcceptanceRecord), reading
    return validated(reading)


def line(steps: int, drafted: int, positions: list[int]) -> str:
    """Print an interval as vLLM does."""
    accepted = sum(positions)
    rate = f"{100 * accepted / drafted:.1f}" if drafted else "nan"
    return (
        "(APIServer pid=1) INFO 11-30 21:50:29 [metrics.py:120] SpecDecoding metrics: "
        f"Mean acceptance length: {1 + accepted / steps:.2f}, "
        f"Accepted throughput: {accepted / 10:.2f} tokens/s, "
        f"Drafted throughput: {drafted / 10:.2f} tokens/s, "
        f"Accepted: {accepted} tokens, Drafted: {drafted} tokens, "
        f"Per-position acceptance rate: {', '.join(f'{p / steps:.3f}' for p in positions)}, "
        f"Avg Draft acceptance rate: {rate}%"
    )


def test_the_intervals_of_a_log_add_up_to_the_counters_of_the_server() -> None:
    """The counters were read after the 22nd interval; steps are in no line of the log."""
    records = [validated(r) for r in readings(LOG) if isinstance(r, AcceptanceRecord)]
    assert len(records) == len(readings(LOG)) == 25
    counted = records[:22]
    assert all(record.steps_basis == "counted" for record in counted)
    assert sum(record.steps or 0 for record in counted) == 3325
    assert sum(record.drafted or 0 for record in counted) == 9877
    histograms = [record.histogram or () for record in counted]
    assert [sum(column) for column in zip(*histograms, strict=True)] == [2144, 325, 188, 668]
    assert {(r.scope, r.engine, r.requests, r.k) for r in records} == {(Scope.LOG, "vllm", None, 3)}


def test_a_line_of_fifteen_positions_gives_its_65_drafts() -> None:
    rates = "0.600, 0.385, 0.215, 0.108, 0.062" + 10 * ", 0.000"
    record = only(
        "SpecDecoding metrics: Mean acceptance length: 2.37, Accepted: 89 tokens,"
        f" Drafted: 975 tokens, Per-position acceptance rate: {rates},"
        " Avg Draft acceptance rate: 9.1%"
    )
    assert (record.steps, record.steps_basis, record.k) == (65, "counted", 15)
    assert record.histogram == (26, 14, 11, 7, 3, 4, *10 * [0])


def test_a_line_of_seven_positions_gives_its_23_drafts() -> None:
    record = only(
        "SpecDecoding metrics: Draft acceptance rate: 27.3%, Mean acceptance length: 2.91,"
        " Accepted: 44 tokens, Drafted: 161 tokens,"
        " Per-position acceptance rate: 0.739, 0.478, 0.261, 0.174, 0.130, 0.087, 0.043"
    )
    assert (record.steps, record.k, record.accepted) == (23, 7, 44)
    assert record.histogram == (6, 6, 5, 2, 1, 1, 1, 1)


def test_place_and_colours_and_carriage_returns_do_not_matter() -> None:
    text = f"x\n\x1b[32mINFO\x1b[0m {line(65, 130, [39, 25])}\x1b[0m\r\ny"
    ((place, reading),) = ADAPTER.convert(document(text))
    assert place == Place("log", 2)
    assert isinstance(reading, AcceptanceRecord)
    assert reading.accepted == 64


def test_steps_that_the_line_leaves_open_are_an_estimate() -> None:
    record = only(line(40_000, 75_001, [20_000, 10_000]))
    assert record.steps_basis == "estimated"
    assert record.steps is not None
    assert abs(record.steps / 40_000 - 1) < 0.01


def test_a_line_without_positions_leaves_k_unknown() -> None:
    text = line(65, 130, [39, 25]).replace("Per-position acceptance rate: 0.600, 0.385, ", "")
    record = only(text)
    assert (record.k, record.histogram, record.steps) == (None, None, 65)


def test_an_interval_in_which_nothing_was_drafted_is_no_acceptance_of_zero() -> None:
    (reading,) = readings(line(5, 0, [0, 0]))
    assert reading == NoMetrics("steps were counted in the interval, but nothing was drafted")


@pytest.mark.parametrize(
    "older",
    [
        (
            "INFO 02-06 03:05:53 metrics.py:475] Speculative metrics: Draft acceptance rate: 0.200,"
            " System efficiency: 0.167, Number of speculative tokens: 5,"
            " Number of accepted tokens: 1, Number of draft tokens: 5, Number of emitted tokens: 1."
        ),
        "SpecDecoding metrics: Draft acceptance rate: 40%, Accepted: 6 tokens, Drafted: 15 tokens",
    ],
    ids=["running totals", "without steps"],
)
def test_older_lines_that_tell_no_steps_are_explained(older: str) -> None:
    assert ADAPTER.recognises(document(older))
    (reading,) = readings(older)
    assert isinstance(reading, NoMetrics)
    assert "steps" in reading.reason


@pytest.mark.parametrize("case", ["vllm-0.32-no-speculation.log"])
def test_a_log_without_speculation_says_so(case: str) -> None:
    text = (CASES / "logs" / case).read_text()
    assert ADAPTER.recognises(document(text))
    (reading,) = readings(text)
    assert isinstance(reading, NoMetrics)
    assert "no SpecDecoding metrics lines" in reading.reason


@pytest.mark.parametrize(
    "garbled",
    [
        "SpecDecoding metrics: Mean accep",
        "SpecDecoding metrics: Mean acceptance length: 2.37, Accepted: 89 tokens",
        line(65, 130, [39, 25]).replace("0.600, 0.385", "0.6!0, 0.385"),
        line(65, 130, [39, 25]).replace("Accepted: 64", "Accepted: 6400"),
        line(65, 130, [39, 25]).replace("Drafted: 130", f"Drafted: {'9' * 400}"),
        line(65, 130, [39, 25]).replace("length: 1.98", "length: 0.10"),
    ],
)
def test_a_garbled_line_is_bad_and_the_rest_is_read(garbled: str) -> None:
    bad, good = readings(f"{garbled}\n{line(23, 46, [17, 11])}")
    assert isinstance(bad, BadRecord)
    assert isinstance(good, AcceptanceRecord)
    assert good.steps == 23


def test_it_recognises_logs_and_nothing_else() -> None:
    assert ADAPTER.recognises(document(LOG))
    scrape = (CASES / "prometheus" / "vllm-0.32-ngram-after.prom").read_text()
    assert not ADAPTER.recognises(document(scrape))
    llama = (CASES / "logs" / "llama-server-24536.log").read_text()
    assert not ADAPTER.recognises(document(llama))
    assert not ADAPTER.recognises(JsonDocument(Place("x"), LOG))


@st.composite
def intervals(draw: st.DrawFn) -> tuple[int, int, list[int]]:
    steps = draw(st.integers(1, 400))
    survivors = sorted(draw(st.lists(st.integers(0, steps), min_size=1, max_size=8)), reverse=True)
    least = max(sum(survivors), steps)
    return steps, draw(st.integers(least, max(least, steps * len(survivors)))), survivors


@given(intervals())
def test_steps_said_to_be_counted_are_those_that_were_printed(
    interval: tuple[int, int, list[int]],
) -> None:
    steps, drafted, survivors = interval
    record = only(line(steps, drafted, survivors))
    full_drafts_would_fit = drafted % len(survivors) == 0
    if record.steps_basis == "counted" and not full_drafts_would_fit:
        assert record.steps == steps
        falls = [a - b for a, b in zip([steps, *survivors], [*survivors, 0], strict=True)]
        assert list(record.histogram or ()) == falls


@given(st.integers(1, 5000), st.lists(st.integers(0, 5000), min_size=1, max_size=8))
def test_full_drafts_give_the_steps_at_any_number_of_them(steps: int, falls: list[int]) -> None:
    survivors = sorted((min(fall, steps) for fall in falls), reverse=True)
    record = only(line(steps, steps * len(survivors), survivors))
    assert (record.steps, record.steps_basis) == (steps, "counted")


@given(
    st.text()
    | st.builds(
        lambda start, new, end: LOG[300 : 300 + start] + new + LOG[300 + end :],
        st.integers(0, 4000),
        st.text(max_size=9),
        st.integers(0, 4000),
    )
    | st.text().map("SpecDecoding metrics: ".__add__)
)
def test_no_text_raises(text: str) -> None:
    ADAPTER.recognises(document(text))
    assert readings(text)
    assert list(ADAPTER.convert(JsonDocument(Place("x"), text)))
