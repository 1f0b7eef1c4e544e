"""Reads sources into a collection, large files of JSON lines with several processes."""

import gc
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import httpx2

from outrider.records.adapters.base import Adapter
from outrider.records.adapters.registry import ADAPTERS
from outrider.records.collecting import Collection, Collector
from outrider.records.reading import Place
from outrider.records.sources.line_ranges import LineRange, line_ranges, lines_of
from outrider.records.sources.opening import Visited, check_source
from outrider.records.sources.reader import read, read_lines
from outrider.records.sources.values import NumberedLine
from outrider.records.worker_pool import interrupt_blocked, worker_pool


@dataclass(frozen=True, slots=True)
class _Part:
    """What one range of lines came to."""

    collection: Collection
    lines: int


def usable_jobs() -> int:
    """Return how many processes can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def collect(
    names: Iterable[str],
    *,
    by: Sequence[str],
    forced: Adapter | None,
    stdin: BinaryIO,
    http: httpx2.Client,
    jobs: int,
) -> Collection:
    """Read everything; with `jobs` above 1, large files of JSON lines by that many processes.

    All counts are the same for any number of jobs. Raises UnreadableSource where a name is that of
    nothing.
    """
    collector = Collector(by)
    adapters = _asked(forced)
    sources, visited = [*names], Visited()
    for name in sources:
        check_source(name)
    for name in sources:
        ranges = line_ranges(Path(name)) if jobs > 1 else []
        if len(ranges) > 1 and visited.is_new(Path(name)):
            _collect_ranges(ranges, collector, by, forced, jobs)
            continue
        with _without_cycle_search():
            for place, reading in read(
                [name], adapters, forced=forced, stdin=stdin, http=http, visited=visited
            ):
                collector.add(place, reading)
    return collector.finish()


def _collect_ranges(
    ranges: Sequence[LineRange],
    collector: Collector,
    by: Sequence[str],
    forced: Adapter | None,
    jobs: int,
) -> None:
    work = partial(_collect_range, by=tuple(by), forced=forced)
    first_line = 1
    with worker_pool(jobs) as pool:
        for lines, part in _in_order(pool, work, ranges, ahead=2 * jobs):
            collection = part.collection
            if collection.ids & collector.collection.ids:
                # Rare enough to be read again with what was seen before.
                again = lines_of(lines, first_line)
                for place, reading in read_lines(
                    str(lines.path), again, _asked(forced), forced=forced
                ):
                    collector.add(place, reading)
            else:
                collection.bad = [
                    (_moved(place, first_line), reason) for place, reason in collection.bad
                ]
                collector.merge(collection)
            first_line += part.lines


def _in_order(
    pool: ProcessPoolExecutor,
    work: Callable[[LineRange], _Part],
    ranges: Sequence[LineRange],
    ahead: int,
) -> Iterator[tuple[LineRange, _Part]]:
    """Yield the results in the order of the ranges, with few waiting so that memory stays small."""
    waiting: deque[tuple[LineRange, Future[_Part]]] = deque()
    for lines in chain(ranges, [None] * ahead):
        if lines is not None:
            with interrupt_blocked():
                waiting.append((lines, pool.submit(work, lines)))
        if waiting and (lines is None or len(waiting) > ahead):
            done, future = waiting.popleft()
            yield done, future.result()


def _collect_range(lines: LineRange, *, by: Sequence[str], forced: Adapter | None) -> _Part:
    collector, count = Collector(by), 0

    def counted() -> Iterator[NumberedLine]:
        nonlocal count
        for line in lines_of(lines):
            count += 1
            yield line

    with _without_cycle_search():
        for place, reading in read_lines(str(lines.path), counted(), _asked(forced), forced=forced):
            collector.add(place, reading)
    return _Part(collector.finish(), count)


@contextmanager
def _without_cycle_search() -> Iterator[None]:
    # Records are many, live in batches and are in no cycles; looking for some costs a quarter of
    # the time.
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _asked(forced: Adapter | None) -> Sequence[Adapter]:
    return ADAPTERS if forced is None else (forced,)


def _moved(place: Place, first_line: int) -> Place:
    return place if place.line is None else Place(place.source, place.line + first_line - 1)
