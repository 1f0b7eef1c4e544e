"""Collections of records for the tests of what is built from them."""

from collections.abc import Iterable, Sequence

from outrider.records.collecting import Collection, Collector
from outrider.records.reading import AcceptanceRecord, Cadence, Place, Reading, Scope, TagValue


def record(
    histogram: Sequence[int],
    *,
    engine: str = "vllm",
    scope: Scope = Scope.REQUEST,
    completion_tokens: int | None = None,
    cadence: Cadence | None = None,
    **tags: TagValue,
) -> AcceptanceRecord:
    """A record whose drafts were all K long."""
    k = len(histogram) - 1
    return AcceptanceRecord(
        engine=engine,
        scope=scope,
        k=k,
        histogram=histogram,
        drafted=k * sum(histogram),
        requests=1 if scope is Scope.REQUEST else None,
        completion_tokens=completion_tokens,
        cadence=cadence,
        tags=tags,
    )


def collected(readings: Iterable[Reading], by: Sequence[str] = ()) -> Collection:
    collector = Collector(by)
    for line, reading in enumerate(readings, start=1):
        collector.add(Place("responses.jsonl", line), reading)
    return collector.finish()


def two_kinds(of_each: int = 6, language: str = "en") -> Collection:
    """Copying accepts all four, writing accepts nothing: one mean would hide both."""
    return collected(
        record([0, 0, 0, 0, 50], kind="copy", language=language)
        if number % 2
        else record([50, 0, 0, 0, 0], kind="write", language=language)
        for number in range(2 * of_each)
    )
