"""Windows by hand."""

from collections.abc import Iterable, Mapping

from outrider.records.collecting import Collector
from outrider.records.reading import AcceptanceRecord, Place, Scope
from outrider.records.windows import Window

START_S = 1_796_100_000.0
EVERY_S = 10.0

GOOD = (40, 25, 20, 15)
BROKEN = (97, 2, 1, 0)
LOOPING = (1, 1, 1, 97)


def record(
    histogram: Iterable[int], tags: Mapping[str, str] | None = None, scope: Scope = Scope.INTERVAL
) -> AcceptanceRecord:
    counts = tuple(histogram)
    return AcceptanceRecord(
        engine="vllm",
        scope=scope,
        requests=None,
        k=len(counts) - 1,
        histogram=counts,
        drafted=sum(counts) * (len(counts) - 1),
        tags=tags or {},
    )


def window(number: int, *records: AcceptanceRecord, problem: str | None = None) -> Window:
    """The window of that number, from 0."""
    collector = Collector()
    for each in records:
        collector.add(Place("http://server"), each)
    start = START_S + EVERY_S * number
    return Window(start, start + EVERY_S, collector.finish(), problem)


def series(*histograms: tuple[int, ...]) -> list[Window]:
    """One window after another with one record each, none for an empty histogram."""
    return [
        window(number, *([record(counts)] if counts else []))
        for number, counts in enumerate(histograms)
    ]
