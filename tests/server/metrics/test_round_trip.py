"""Steps go in, the page and the log come out, and our own readers find the steps again."""

import logging
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.loops import request
from tests.server.metrics.serving import Served, decoded, metrics_of

from outrider.acceptance.histogram import AcceptanceHistogram
from outrider.engine.update import Update
from outrider.records.adapters.registry import adapter
from outrider.records.reading import AcceptanceRecord, NoMetrics, Place, Scope
from outrider.records.scrape import difference, read_scrape, since_start
from outrider.records.sources.document import TextDocument
from outrider.records.validation import validated
from outrider.server.metrics.interval_log import IntervalLog
from outrider.server.metrics.periodic_log import vllm_formatter
from outrider.server.metrics.serving_metrics import ServingMetrics

K = 4
STEPS = st.lists(
    st.integers(0, K).flatmap(lambda d: st.tuples(st.just(d), st.integers(0, d))), max_size=40
)
DRAFTED = STEPS.filter(lambda lengths: any(drafted for drafted, _ in lengths))


def report(metrics: ServingMetrics, lengths: Iterable[tuple[int, int]]) -> None:
    """Report a step of one request for each drafted and accepted length."""
    sequence = request([0], 1000)
    metrics.added(sequence)
    for drafted, accepted in lengths:
        metrics.step(sequence, decoded(drafted, accepted))
        metrics.stepped([Update(sequence, tokens=accepted + 1)])


def page(metrics: ServingMetrics) -> str:
    return metrics.render()[0].decode()


def only(readings: Iterable[object]) -> AcceptanceRecord:
    (reading,) = readings
    assert isinstance(reading, AcceptanceRecord), reading
    return validated(reading)


def assert_tells(record: AcceptanceRecord, lengths: list[tuple[int, int]]) -> None:
    counted = [(drafted, accepted) for drafted, accepted in lengths if drafted]
    expected = AcceptanceHistogram.from_steps(
        [accepted for _, accepted in counted], [drafted for drafted, _ in counted], K
    )
    assert (record.k, record.steps) == (K, len(counted))
    assert (record.accepted, record.drafted) == (expected.accepted, expected.drafted)
    assert record.histogram == expected.counts


def readings_of(text: str) -> list[object]:
    document = TextDocument(Place("log"), text[: 64 << 10], lambda: enumerate(text.split("\n"), 1))
    reader = adapter("vllm-log")
    assert reader.recognises(document)
    return [reading for _, reading in reader.convert(document)]


@given(STEPS)
def test_the_scrape_reader_finds_every_step_of_the_page(lengths: list[tuple[int, int]]) -> None:
    metrics = metrics_of(K)
    report(metrics, lengths)
    scrape = read_scrape(page(metrics))
    assert not scrape.bad
    if not any(drafted for drafted, _ in lengths):
        assert since_start(scrape) == [NoMetrics("nothing was drafted since the server started")]
        return
    record = only(since_start(scrape))
    assert_tells(record, lengths)
    assert record.tags == {"model": "m"}
    assert record.snapshot is not None
    assert "1700000000" in record.snapshot


@given(STEPS, DRAFTED)
def test_two_pages_tell_the_steps_between_them(
    before: list[tuple[int, int]], between: list[tuple[int, int]]
) -> None:
    metrics = metrics_of(K)
    report(metrics, before)
    first = read_scrape(page(metrics))
    report(metrics, between)
    record = only(difference(first, read_scrape(page(metrics))))
    assert record.scope is Scope.INTERVAL
    assert "counters_reset" not in record.tags
    assert_tells(record, between)


@given(DRAFTED)
def test_the_log_reader_finds_the_tokens_of_an_interval(lengths: list[tuple[int, int]]) -> None:
    """How many steps there were is in no line where drafts differ in length."""
    metrics = metrics_of(K)
    log = IntervalLog(metrics.snapshot, now=0.0)
    report(metrics, lengths)
    record = only(readings_of(as_logged(log.turn(10.0))))
    assert (record.k, record.scope) == (K, Scope.LOG)
    assert record.drafted == sum(drafted for drafted, _ in lengths)
    assert record.accepted == sum(accepted for _, accepted in lengths)


@given(st.lists(st.integers(0, K), min_size=1, max_size=40))
def test_the_log_reader_finds_every_step_of_full_drafts(accepted: list[int]) -> None:
    metrics = metrics_of(K)
    log = IntervalLog(metrics.snapshot, now=0.0)
    lengths = [(K, each) for each in accepted]
    report(metrics, lengths)
    record = only(readings_of(as_logged(log.turn(10.0))))
    assert record.steps_basis == "counted"
    assert_tells(record, lengths)


def test_a_real_engines_page_and_log_agree_with_the_steps_of_its_requests() -> None:
    served = Served(k=K, script=lambda sequence: [int(sequence.token_ids[-1]) + 1] * K)
    log = IntervalLog(served.metrics.snapshot, now=0.0)
    for number in range(5):
        served.add(request([0], 7 + number, str(number)))
    steps = [step for ended in served.finish().values() for step in ended.recorded.steps]
    lengths = [(step.drafted, step.accepted) for step in steps]
    assert {accepted for _, accepted in lengths} == {0, 1}
    assert_tells(only(since_start(read_scrape(page(served.metrics)))), lengths)
    record = only(readings_of(as_logged(log.turn(served.clock()))))
    assert record.accepted == sum(accepted for _, accepted in lengths)


def as_logged(lines: Iterable[str]) -> str:
    """The lines as the server's log has them."""
    formatter = vllm_formatter()
    return "\n".join(
        formatter.format(logging.LogRecord("n", logging.INFO, "log.py", 1, line, None, None))
        for line in lines
    )
