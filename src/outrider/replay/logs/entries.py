"""From the names of sources to the entries in them: JSON lines and bodies, CSV, Parquet."""

import csv
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, BinaryIO, TypeAlias

import duckdb
import httpx2

from outrider.records.reading import BadRecord, NoMetrics, Place
from outrider.records.sources.decoding import NotJson, decoded
from outrider.records.sources.document import JsonDocument, TextDocument
from outrider.records.sources.envelope import is_wrapped, unwrapped
from outrider.records.sources.framing import framed
from outrider.records.sources.opening import OpenSource, Visited, open_sources
from outrider.replay.logs.base import Entry
from outrider.replay.logs.fields import (
    COMPLETION_IDS,
    COMPLETION_TEXT,
    MESSAGES,
    PROMPT_TEXT,
    first_of,
)

Placed: TypeAlias = Entry | tuple[Place, BadRecord | NoMetrics]

_PARQUET = b"PAR1"
_ROWS_AT_ONCE = 64
_LONGEST_CELL = 1 << 26
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_BODY = re.compile(r'"choices"\s*:|^\s*\{\s*"error"\s*:\s*\{')
_COLUMNS = frozenset((*COMPLETION_IDS, *COMPLETION_TEXT, *MESSAGES))


def entries_of(
    name: str, *, stdin: BinaryIO, http: httpx2.Client, visited: Visited
) -> Iterator[Placed]:
    """Yield the entries of a source in their order, and what is wrong with it."""
    for source in open_sources(name, stdin=stdin, http=http, visited=visited):
        if isinstance(source, tuple):
            yield source
        elif source.head.startswith(_PARQUET):
            yield from _parquet(source)
        else:
            yield from _framed(source)


def _framed(source: OpenSource) -> Iterator[Placed]:
    for item in framed(source):
        if isinstance(item, JsonDocument):
            yield from _entries(item)
        elif isinstance(item, TextDocument) and _is_csv(item):
            yield from _csv(item)
        elif isinstance(item, tuple) and isinstance(item[1], (BadRecord, NoMetrics)):
            yield item[0], item[1]
        else:
            place = Place(source.name) if isinstance(item, tuple) else item.place
            yield place, BadRecord("no log of answers; docs/replay.md lists what is read")


def _entries(document: JsonDocument) -> Iterator[Placed]:
    value = document.value
    wrapped = is_wrapped(value) and not _is_answer(value)
    for part in unwrapped(document) if wrapped else (document,):
        yield part if isinstance(part, tuple) else _entry(part)


def _is_answer(value: Mapping[str, Any]) -> bool:
    """Whether a `response` is what the model said, be it JSON or not, and no body around that."""
    if first_of(value, COMPLETION_IDS) is not None:
        return True
    said = first_of(value, COMPLETION_TEXT)
    asked = first_of(value, (*PROMPT_TEXT, *MESSAGES))
    return isinstance(said, str) and asked is not None and not _BODY.search(said)


def _entry(document: object) -> Placed:
    assert not isinstance(document, tuple)
    if not isinstance(document, JsonDocument):
        place: Place = getattr(document, "place")  # noqa: B009
        return place, BadRecord("no JSON in the envelope")
    value = document.value
    if not isinstance(value, dict):
        return document.place, BadRecord("a list; expected an object for each answer")
    return Entry(document.place, value, document.request or _NOTHING, document.tags)


def _is_csv(document: TextDocument) -> bool:
    first = document.head.split("\n", 1)[0].strip().lstrip("\ufeff")
    return not _COLUMNS.isdisjoint(next(csv.reader([first]), []))


def _csv(document: TextDocument) -> Iterator[Placed]:
    csv.field_size_limit(_LONGEST_CELL)
    source = document.place.source
    # A quoted cell may span lines, so each keeps its end.
    rows = csv.DictReader(f"{line}\n" for _, line in document.lines())
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield Place(source, rows.line_num), BadRecord(f"not CSV: {error}")
            continue
        place = Place(source, rows.line_num)
        if row.get(None) is not None:
            yield place, BadRecord("more cells than columns")
            continue
        yield from _entries(JsonDocument(place, {n: _cell(n, v) for n, v in row.items() if v}))


def _cell(column: str, text: str) -> Any:
    """Return the list or number that a cell holds, else its text.

    What was said is text, also where it is JSON; what was asked may be a list of messages.
    """
    beginnings = "[" if column in PROMPT_TEXT else "[{-0123456789"
    if column in COMPLETION_TEXT or text[:1] not in beginnings:
        return text
    try:
        value = decoded(text)
    except NotJson:
        return text
    if column not in PROMPT_TEXT:
        return value
    messages = bool(value) and all(isinstance(each, dict) for each in value)
    return value if messages else text


def _parquet(source: OpenSource) -> Iterator[Placed]:
    if source.path is None:
        yield (
            Place(source.name),
            BadRecord("a Parquet file, which is read only from disk, uncompressed"),
        )
        return
    with duckdb.connect() as database:
        try:
            rows = database.execute("SELECT * FROM read_parquet(?)", [str(source.path)])
            names = [column[0] for column in rows.description or ()]
            number = 0
            while some := rows.fetchmany(_ROWS_AT_ONCE):
                for row in some:
                    number += 1
                    told = {n: v for n, v in zip(names, row, strict=True) if v is not None}
                    yield from _entries(JsonDocument(Place(source.name, number), told))
        except duckdb.Error as error:
            cause = str(error).partition("\n")[0]
            yield Place(source.name), BadRecord(f"no readable Parquet file ({cause})")
