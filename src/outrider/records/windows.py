"""Windows of time, and what a server or a stream told in each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from outrider.errors import NothingUsable, UnreadableSource
from outrider.records.adapters.base import PlacedReading
from outrider.records.collecting import Collection, Collector, settled
from outrider.records.reading import NoMetrics, Place
from outrider.records.scrape import Scrape, difference, since_start
from outrider.records.sources.fast_lines import PlacedBatch
from outrider.records.sources.live import StreamEnded


@dataclass(frozen=True, slots=True)
class Window:
    """What was told from `start_s` to `end_s` (Unix time); `problem`: why nothing could be."""

    start_s: float
    end_s: float
    collection: Collection = field(default_factory=Collection)
    problem: str | None = None


def scraped_windows(
    url: str,
    scrape: Callable[[], Scrape],
    *,
    every_s: float,
    for_s: float | None,
    by_rank: bool,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Iterator[Window]:
    """Scrape a server now and again and again; each window is the difference to the scrape before.

    A window is longer where a scrape failed. On Ctrl-C the window that is open is closed first.
    Raises UnreadableSource where the first scrape fails, NothingUsable where it has no counters.
    """
    before, since = scrape(), clock()
    if not before.counts:
        reason = f"{url}: {_why_no_counters(before)}"
        raise NothingUsable(reason, "counters of vLLM", "see docs/watch.md")

    closing = _closing_times(since, every_s, for_s, clock)
    return _differences(url, scrape, before, since, closing, by_rank, clock, sleep)


def _why_no_counters(page: Scrape) -> str:
    [reading] = since_start(page)
    return reading.reason if isinstance(reading, NoMetrics) else "no counters"


def _differences(
    url: str,
    scrape: Callable[[], Scrape],
    before: Scrape,
    since: float,
    closing: Iterator[float],
    by_rank: bool,  # noqa: FBT001  as its only caller has it
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Iterator[Window]:
    for due in closing:
        interrupt = _interrupted(lambda due=due: sleep(max(0.0, due - clock())))  # type: ignore[misc]
        try:
            after, now = scrape(), clock()
            # What had counters and has none is not idle.
            problem = None if after.counts or after.bad else f"{url}: {_why_no_counters(after)}"
        except UnreadableSource as error:
            now, problem = clock(), error.seen
        if problem is not None:
            yield Window(since, now, problem=problem)
        else:
            collector = Collector()
            for reading in difference(before, after, by_rank=by_rank):
                collector.add(Place(url), reading)
            yield Window(since, now, collector.finish())
            if after.counts:
                before, since = after, now
        if interrupt is not None:
            raise interrupt


def streamed_windows(
    take: Callable[[float], PlacedReading | PlacedBatch | None],
    *,
    by: Sequence[str],
    every_s: float,
    for_s: float | None,
    clock: Callable[[], float],
) -> Iterator[Window]:
    """Cut what arrives into windows by the time at which it does, until StreamEnded.

    `take(timeout_s)` is that of `Arrivals`. On Ctrl-C the window that is open is closed first.
    """
    since = clock()
    ids: set[bytes] = set()
    for due in _closing_times(since, every_s, for_s, clock):
        # An answer that is read again in a later window counts as little as in the same.
        collector = Collector(by)
        collector.collection.ids = ids
        ended = interrupt = None
        try:
            interrupt = _interrupted(lambda c=collector, due=due: _fill(c, take, due, clock))  # type: ignore[misc]
        except StreamEnded as error:
            ended = error
        now = clock()
        yield Window(since, now, settled(collector.finish()))
        since = now
        if interrupt is not None:
            raise interrupt
        if ended is not None:
            return


def _fill(
    collector: Collector,
    take: Callable[[float], PlacedReading | PlacedBatch | None],
    due: float,
    clock: Callable[[], float],
) -> None:
    while (left := due - clock()) > 0:
        arrived = take(left)
        if arrived is not None:
            collector.add(*arrived)


def _closing_times(
    start: float, every_s: float, for_s: float | None, clock: Callable[[], float]
) -> Iterator[float]:
    """Yield when each window is to be closed; those that would be late already are left out."""
    end = start + (inf if for_s is None else for_s)
    due = start
    while due < end:
        due += every_s * max(1, int((clock() - due) // every_s) + 1)
        yield min(due, end)


def _interrupted(wait: Callable[[], None]) -> KeyboardInterrupt | None:
    try:
        wait()
    except KeyboardInterrupt as error:
        return error
    return None
