import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from outrider.errors import InvalidSetting
from outrider.records.adapters.registry import ADAPTERS
from outrider.records.reading import AcceptanceRecord, NoMetrics, Scope
from outrider.records.sources.live import Arrivals, StreamEnded, live_readings
from outrider.records.sources.values import NumberedLine

CASES = Path(__file__).parents[1] / "cases"
LOG = (CASES / "logs" / "vllm-0.32-ngram.log").read_bytes().splitlines(keepends=True)
ANSWERS = (CASES / "two-kinds.jsonl").read_bytes().splitlines(keepends=True)
PAGE = (CASES / "prometheus" / "vllm-0.32-ngram-after.prom").read_bytes().splitlines(True)


class Feed:
    """Lines that count how many were asked for."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lines = lines
        self.asked = 0

    def __iter__(self) -> Iterator[NumberedLine]:
        for number, line in enumerate(self.lines, 1):
            self.asked = number
            yield number, line


def test_an_answer_is_read_before_the_next_line_is_asked_for() -> None:
    feed = Feed(ANSWERS)
    readings = live_readings("-", feed, ADAPTERS)
    for number in (1, 2, 3):
        _, reading = next(readings)
        assert isinstance(reading, AcceptanceRecord)
        assert reading.tags["kind"] in {"copy", "write"}
        assert feed.asked == number


def test_a_line_of_a_log_is_read_as_soon_as_it_is_there() -> None:
    feed = Feed([b"some banner\n", b"\n", *LOG])
    readings = live_readings("-", feed, ADAPTERS)
    place, first = next(readings)
    assert (place.line, isinstance(first, NoMetrics)) == (1, True)
    place, second = next(readings)
    assert isinstance(second, AcceptanceRecord)
    assert (second.scope, second.accepted, second.drafted) == (Scope.LOG, 115, 287)
    assert place.line == feed.asked == 10


def test_a_stream_of_events_becomes_one_answer_at_its_end() -> None:
    lines = (CASES / "vllm" / "sse-token-ids.sse").read_bytes().splitlines(keepends=True)
    readings = [reading for _, reading in live_readings("-", Feed(lines), ADAPTERS)]
    assert len(readings) == 1


def test_every_line_that_nobody_knows_is_told() -> None:
    lines = [b"hello\n", b"\xff\xfe world\n", b"[not json\n"]
    readings = [reading for _, reading in live_readings("-", Feed(lines), ADAPTERS)]
    assert [type(reading) for reading in readings] == [NoMetrics] * 3


def test_a_page_of_counters_is_not_a_stream() -> None:
    with pytest.raises(InvalidSetting, match="name its URL instead"):
        list(live_readings("-", Feed(PAGE), ADAPTERS))


def test_arrivals_do_not_wait_longer_than_they_are_told_to() -> None:
    go_on = threading.Event()

    def slow() -> Iterator[NumberedLine]:
        yield 1, ANSWERS[0]
        go_on.wait(60)

    arrivals = Arrivals(live_readings("-", slow(), ADAPTERS))
    assert arrivals.take(60) is not None
    assert arrivals.take(0.001) is None
    go_on.set()
    with pytest.raises(StreamEnded):
        arrivals.take(60)


def test_what_reading_raises_is_raised_where_it_is_taken() -> None:
    arrivals = Arrivals(live_readings("-", Feed(PAGE), ADAPTERS))
    assert arrivals.take(60) is not None  # the first line of a page may be a comment of any file
    with pytest.raises(InvalidSetting):
        arrivals.take(60)


def test_answers_without_a_pause_come_one_by_one() -> None:
    """The reader of files takes hundreds of such lines at once, somewhat later."""
    body = json.loads(ANSWERS[0])["response"]
    lines = [json.dumps({**body, "id": f"a-{n}"}).encode() + b"\n" for n in range(40)]
    feed = Feed(lines)
    next(live_readings("-", feed, ADAPTERS))
    assert feed.asked == 1
