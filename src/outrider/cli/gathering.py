"""Gathers what `outrider report` was pointed at."""

import io
import sys
import time
from dataclasses import dataclass
from difflib import get_close_matches
from typing import BinaryIO

import httpx2

from outrider.cli.durations import parse_duration_s
from outrider.errors import InvalidSetting, NothingUsable, UnreadableSource
from outrider.records.adapters.base import Adapter
from outrider.records.adapters.registry import adapter
from outrider.records.collect import collect
from outrider.records.collecting import Collection, Collector
from outrider.records.reading import Place
from outrider.records.scrape import Scrape, difference, read_scrape, scrape_url, swapped
from outrider.records.segment_keys import BASE_KEYS
from outrider.records.sources.addresses import is_url, without_password
from outrider.records.sources.opening import OpenSource, open_sources
from outrider.report.cells import counted

TIMEOUT_S = 10.0
LARGEST_PAGE = 64 << 20


@dataclass(frozen=True, slots=True)
class Asked:
    """Where to read from, as it was typed; `interval` is what --for got."""

    sources: tuple[str, ...]
    by: tuple[str, ...]
    format_name: str | None
    before: str | None
    after: str | None
    interval: str | None
    jobs: int

    @property
    def named(self) -> tuple[str, ...]:
        """Everything that is read, as it may be shown."""
        pair = [self.pair] if self.before and self.after else []
        return (*map(without_password, self.sources), *pair)

    @property
    def pair(self) -> str:
        """The two scrapes, as they may be shown."""
        return " to ".join(without_password(name or "") for name in (self.before, self.after))


def gather(asked: Asked) -> Collection:
    """Read everything; InvalidSetting or UnreadableSource for what cannot be asked or opened."""
    _check(asked)
    forced = adapter(asked.format_name) if asked.format_name else None
    # Base keys split every report, asked for or not.
    by = [name for name in asked.by if name not in BASE_KEYS]
    with httpx2.Client(timeout=TIMEOUT_S, follow_redirects=True) as http:
        if asked.interval is not None:
            collection = _watch(asked.sources[0], parse_duration_s("--for", asked.interval), http)
        else:
            collection = _read(asked, forced, by, http)
    check_keys(by, collection)
    return collection


def _read(asked: Asked, forced: Adapter | None, by: list[str], http: httpx2.Client) -> Collection:
    collection = collect(
        asked.sources, by=by, forced=forced, stdin=_stdin(), http=http, jobs=asked.jobs
    )
    if asked.before is None or asked.after is None:
        return collection
    collector = Collector(by)
    collector.merge(collection)
    before, after = (_scrape(name, http) for name in (asked.before, asked.after))
    if swapped(before, after):
        raise InvalidSetting(
            f"the counters of --after {asked.after} are below those of --before {asked.before}",
            "the earlier scrape as --before",
            "swap the two",
        )
    for reading in difference(before, after):
        collector.add(Place(asked.pair), reading)
    return collector.finish()


def _watch(url: str, interval_s: float, http: httpx2.Client) -> Collection:
    before = scrape_url(url, http)
    shown = without_password(url)
    print(f"outrider: scraping {shown} again in {interval_s:g} s", file=sys.stderr)  # noqa: T201
    time.sleep(interval_s)
    collector = Collector()
    for reading in difference(before, scrape_url(url, http)):
        collector.add(Place(shown), reading)
    return collector.finish()


def _scrape(name: str, http: httpx2.Client) -> Scrape:
    if is_url(name):
        return scrape_url(name, http)
    for source in open_sources(name, stdin=_stdin(), http=http):
        if isinstance(source, OpenSource):
            page = source.stream.read(LARGEST_PAGE)
            return read_scrape(page.decode("utf-8", "replace"))
    raise UnreadableSource(f"{name} cannot be read", "a /metrics scrape", "check the path")


def _stdin() -> BinaryIO:
    # There is no standard input at all where it was closed.
    return io.BytesIO() if sys.stdin is None else sys.stdin.buffer


def _check(asked: Asked) -> None:
    if (asked.before is None) != (asked.after is None):
        one = "--before" if asked.after is None else "--after"
        raise InvalidSetting(f"{one} alone", "both --before and --after", "give the other scrape")
    if not asked.named:
        raise InvalidSetting(
            "no source", "files, folders, URLs or -", "name what to read, e.g. responses.jsonl"
        )
    if asked.interval is not None and (
        len(asked.sources) != 1 or not is_url(asked.sources[0]) or asked.before is not None
    ):
        raise InvalidSetting(
            f"--for {asked.interval} with {', '.join(asked.named)}",
            "the one URL of a server's /metrics",
            "name just the URL, or save two scrapes and use --before and --after",
        )
    if asked.jobs < 1:
        raise InvalidSetting(f"--jobs {asked.jobs}", "at least 1", "leave it out")


def check_keys(by: list[str], collection: Collection) -> None:
    """Raise InvalidSetting for a key that no record has, or that has too many values."""
    if not collection.used:
        return
    for name in by:
        if name in collection.dropped_keys:
            raise InvalidSetting(
                f"--by {name} with more different values than can be shown",
                "a key that records share",
                "choose another",
            )
        if name not in collection.told_keys:
            known = sorted({*collection.told_keys, *BASE_KEYS})
            near = get_close_matches(name.lower().replace("-", "_"), known, n=1)
            raise InvalidSetting(
                f"--by {name}, which no record has",
                f"one of {', '.join(known)}",
                f"use --by {near[0]}" if near else "choose one of them",
            )


def check_used(collection: Collection, *, seen: str, expected: str, remedy: str) -> None:
    """Raise NothingUsable, which tells why, where no record was of use."""
    if collection.used:
        return
    reasons = [f"{count:,} × {reason}" for reason, count in collection.no_metrics.most_common(3)]
    if collection.bad_count:
        place, reason = collection.bad[0]
        line = "" if place.line is None else f":{place.line}"
        reasons.append(f"{collection.bad_count:,} bad, first {place.source}{line}: {reason}")
    seen += f" in {counted(collection.read, 'record')} ({'; '.join(reasons) or 'all empty'})"
    raise NothingUsable(seen, expected, remedy)
