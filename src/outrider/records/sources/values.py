"""From JSON values and lines to the documents in them."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from outrider.records.adapters.base import LineAdapter
from outrider.records.reading import BadRecord, Place, TagValue
from outrider.records.sources.decoding import NotJson, decoded, objects_in
from outrider.records.sources.document import JsonDocument
from outrider.records.sources.fast_lines import FastLines, PlacedBatch
from outrider.records.sources.sse import EventStreams, Framed, is_chunk

NumberedLine = tuple[int, bytes | None]
"""A line with its number from 1; None in place of one that is too long."""

LONGEST_LINE = 64 << 20
TOO_LONG = f"a line of more than {LONGEST_LINE >> 20} MiB"

# One for all: there are millions of documents, and most have no tags.
_NO_TAGS: Mapping[str, TagValue] = MappingProxyType({})
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


def documents_in_lines(
    source: str, lines: Iterable[NumberedLine], adapter: LineAdapter | None = None
) -> Iterator[Framed | PlacedBatch]:
    """Read lines that hold a JSON value or belong to an event stream, in any mixture.

    What `adapter` can read by the thousand comes in batches, somewhat later than its neighbours.
    """
    streams = EventStreams(source)
    fast = FastLines(source, adapter)
    for number, line in lines:
        if line is None:
            yield Place(source, number), BadRecord(TOO_LONG)
        elif not fast.takes(number, line):
            yield from _in_line(Place(source, number), line, streams)
        elif fast.full:
            yield from _drained(fast, source, streams)
    yield from _drained(fast, source, streams)
    yield from streams.finish()


def _in_line(place: Place, line: bytes, streams: EventStreams) -> Iterator[Framed]:
    try:
        value = decoded(line)
    except NotJson as error:
        yield from _odd_line(place, line, error, streams)
        return
    if type(value) is dict and value.get("object") != "chat.completion.chunk":
        yield JsonDocument(place, value, None, _NO_TAGS)
    else:
        yield from documents_of(place, value, streams)


def _drained(fast: FastLines, source: str, streams: EventStreams) -> Iterator[Framed | PlacedBatch]:
    batches, left = fast.drained()
    yield from batches
    for number, line in left:
        yield from _in_line(Place(source, number), line, streams)


def documents_of(place: Place, value: object, streams: EventStreams) -> Iterator[Framed]:
    """Read one decoded value: a list of objects is many documents, a chunk is part of a stream.

    What belongs to a stream goes into `streams`, which the caller finishes.
    """
    if is_chunk(value):
        yield from streams.event(place.line, value)
    elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        for one in value:
            yield from documents_of(place, one, streams)
    elif isinstance(value, (dict, list)):
        yield JsonDocument(place, value)
    elif isinstance(value, str) and is_stream(value.lstrip().encode("utf-8", "replace")):
        for line in value.encode("utf-8", "replace").splitlines():
            yield from streams.line(place.line or 1, line)
        yield from streams.finish()
    else:
        yield place, BadRecord(f"the JSON is {_kind(value)}; expected an object or a list")


def documents_in_text(source: str, text: bytes, line: int) -> Iterator[Framed]:
    """Read JSON that spans lines, the first of them `line`: one value, a list, or several."""
    streams = EventStreams(source)
    if text.lstrip()[:1] != b"[" or text.lstrip()[1:].lstrip()[:1] != b"{":
        try:
            value = decoded(text)
        except NotJson as error:
            if error.trailing is None:
                yield Place(source, line), BadRecord(str(error))
                return
        else:
            yield JsonDocument(Place(source, line), value)
            return
    read = 0
    try:
        for start, one in objects_in(text):
            line += text.count(b"\n", read, start)
            read = start
            yield from _object(Place(source, line), one, streams)
    except NotJson as error:
        line += text.count(b"\n", read)
        yield Place(source, line), BadRecord(str(error))
    yield from streams.finish()


def is_stream(text: bytes) -> bool:
    """Whether a line is one of an event stream."""
    return text.startswith(_FIELDS)


def _object(place: Place, text: bytes, streams: EventStreams) -> Iterator[Framed]:
    try:
        value = decoded(text)
    except NotJson as error:
        yield place, BadRecord(str(error))
    else:
        yield from documents_of(place, value, streams)


def _odd_line(place: Place, line: bytes, error: NotJson, streams: EventStreams) -> Iterator[Framed]:
    text = line.strip()
    number = place.line or 1
    if not text or is_stream(text):
        yield from streams.line(number, text)
    elif text.startswith(_BOM):
        yield from _object(place, text.removeprefix(_BOM), streams)
    elif not text.strip(b"\0"):
        yield place, BadRecord("NUL bytes instead of text")
    elif error.trailing is not None and line.startswith(b"{", error.trailing):
        # Answers that were appended to a file without a line break between them.
        yield from documents_in_text(place.source, text, number)
    else:
        yield place, BadRecord(str(error))


def _kind(value: object) -> str:
    if value is None:
        return "null"
    return {bool: "a boolean", str: "a string"}.get(type(value), "a number")
