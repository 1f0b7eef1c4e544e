"""From an open byte stream to the documents in it, whatever the file is called."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from outrider.records.adapters.base import LineAdapter
from outrider.records.reading import BadRecord, Place
from outrider.records.sources.decoding import CUT_OFF, NotJson, decoded
from outrider.records.sources.document import FileDocument, TextDocument
from outrider.records.sources.fast_lines import PlacedBatch
from outrider.records.sources.opening import HEAD, OpenSource
from outrider.records.sources.sse import Framed
from outrider.records.sources.values import (
    LONGEST_LINE,
    NumberedLine,
    documents_in_lines,
    documents_in_text,
    is_stream,
)

if TYPE_CHECKING:
    from io import BufferedReader
    from typing import BinaryIO

    from outrider.records.sources.guarded import Guarded

LONGEST_TEXT = 96 << 20
"""Bytes of a JSON value that spans lines, which has to be read whole."""
TOO_LARGE = (
    f"a JSON value of more than {LONGEST_TEXT >> 20} MiB; write one answer a line, as jq -c '.[]'"
)

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_EVENT = re.compile(rb"^data: ?(?:[{\[]|\[DONE\])", re.MULTILINE)
_BOM = b"\xef\xbb\xbf"
_NUL_RUN = re.compile(rb"\0{8,}")
_CONTROLS = bytes({*range(32)} - {*b"\t\n\r\f\b\x1b"}) + b"\x7f"
_MOST_JUNK = 0.1
_FEWEST_LINES = 2


def framed(
    source: OpenSource, adapter: LineAdapter | None = None
) -> Iterator[Framed | PlacedBatch]:
    """Read the documents of a source, and what is wrong with it; nothing raises."""
    place = Place(source.name)
    head = source.head
    problem = _problem(head)
    if head[8:12] == b"DUCK" and b"\0" in head[:64]:
        if source.path is not None:
            yield FileDocument(place, source.path, head[:64])
        else:
            yield place, BadRecord("a DuckDB file, which is read only from disk, uncompressed")
        return
    if problem is None:
        yield from _documents(source.name, source.stream, head, adapter)
    elif not source.failures:
        yield place, BadRecord(problem)
    if source.failures:
        yield place, BadRecord(f"it breaks off: {source.failures[0]}")


def numbered_lines(stream: "BinaryIO | BufferedReader[Guarded]") -> Iterator[NumberedLine]:
    """Read lines with their numbers from 1; None in place of a line of more than 64 MiB."""
    number = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        if len(line) < LONGEST_LINE or line.endswith(b"\n"):
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(LONGEST_LINE)
        yield number, None


def _problem(head: bytes) -> str | None:
    """Say why the first bytes can be no text that is read here."""
    if not head:
        return "the file is empty"
    if not head.strip(b"\0"):
        return "nothing but NUL bytes"
    sample = head[:64]
    if head.startswith(_UTF16_MARKS) or (
        len(sample) > 1 and not (sample[::2].strip(b"\0") and sample[1::2].strip(b"\0"))
    ):
        return "UTF-16 or UTF-32 text; expected UTF-8"
    return None


def _documents(
    name: str, stream: "BufferedReader[Guarded]", head: bytes, adapter: LineAdapter | None
) -> Iterator[Framed | PlacedBatch]:
    lines = numbered_lines(stream)
    first = next((one for one in lines if one[1] is None or one[1].strip()), None)
    if first is None:
        yield Place(name), BadRecord("nothing but blank lines")
        return
    number, line = first
    text = b"" if line is None else line.lstrip().removeprefix(_BOM).lstrip(b"\0")
    following = stream.peek(HEAD)
    if line is None or _is_structured(text, following):
        yield from documents_in_lines(name, chain([first], lines), adapter)
    elif text.startswith((b"{", b"[")) and _goes_on(text) and _goes_on(text + following):
        rest = stream.read(LONGEST_TEXT)
        if stream.peek(1):
            yield Place(name, number), BadRecord(TOO_LARGE)
        else:
            yield from documents_in_text(name, text + rest, number)
    elif _junk(head) > _MOST_JUNK:
        yield Place(name), BadRecord("binary data, or text in another encoding than UTF-8")
    else:
        start = head.removeprefix(_BOM).decode("utf-8", "replace")
        yield TextDocument(Place(name), start, lambda: _text_lines(chain([first], lines)))


def _is_structured(text: bytes, following: bytes) -> bool:
    """Whether lines are JSON values or events, going by the first line and what follows it."""
    if is_stream(text):
        return _EVENT.search(text + following) is not None
    if text.startswith((b"{", b"[", b'"data:')):
        try:
            decoded(text)
        except NotJson as error:
            there = error.trailing
            if there is not None and text.startswith(b"{") and text.startswith(b"{", there):
                return True
        else:
            return True
    # What was cut out of a larger file may begin in the middle of a line.
    rows = [row for row in following.split(b"\n") if row.strip()]
    known = [_is_row(row) for row in rows]
    return sum(known) >= _FEWEST_LINES and all(known[:-1])


def _is_row(line: bytes) -> bool:
    if _EVENT.match(line):
        return True
    try:
        return isinstance(decoded(line), dict)
    except NotJson:
        return False


def _goes_on(text: bytes) -> bool:
    """Whether a text may be the beginning of JSON, or of several objects after each other."""
    try:
        decoded(text)
    except NotJson as error:
        there = error.trailing
        return str(error) == CUT_OFF or (there is not None and text.startswith(b"{", there))
    return True


def _junk(head: bytes) -> float:
    """Return the share of characters that text does not have, runs of NUL bytes aside."""
    sample = _NUL_RUN.sub(b"", head)
    text = sample.decode("utf-8", "replace")
    strange = text.count("\ufffd") + len(sample) - len(sample.translate(None, _CONTROLS))
    return strange / max(1, len(text))


def _text_lines(lines: Iterable[NumberedLine]) -> Iterator[tuple[int, str]]:
    for number, line in lines:
        if line is not None:
            yield number, line.removeprefix(_BOM).decode("utf-8", "replace").rstrip("\r\n")
