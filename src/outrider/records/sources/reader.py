"""From names to readings: every source is opened, cut into documents, recognised and converted."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import BinaryIO

import httpx2

from outrider.errors import OutriderError
from outrider.records.adapters.base import Adapter, LineAdapter, PlacedReading
from outrider.records.reading import BadRecord, NoMetrics
from outrider.records.sources.document import Document, FileDocument, JsonDocument, TextDocument
from outrider.records.sources.envelope import is_wrapped, unwrapped
from outrider.records.sources.fast_lines import PlacedBatch
from outrider.records.sources.framing import framed
from outrider.records.sources.opening import Visited, check_source, open_sources
from outrider.records.sources.sse import Framed
from outrider.records.sources.values import NumberedLine, documents_in_lines

MOST_HELD = 1000
MOST_SHOWN = 60
"""Characters of something unknown that a reason quotes."""
MOST_NAMES = 4


def read(
    names: Iterable[str],
    adapters: Sequence[Adapter],
    *,
    forced: Adapter | None = None,
    stdin: BinaryIO,
    http: httpx2.Client,
    visited: Visited | None = None,
) -> Iterator[PlacedReading | PlacedBatch]:
    """Read every record of the sources, in their order; whatever is wrong with one is a BadRecord.

    `forced` reads all of them, whatever they look like. Raises UnreadableSource where a name is
    that of nothing, before anything is read, and where it cannot be opened, in its turn.
    """
    sources = [*names]
    visited = visited or Visited()
    line_adapter = _line_adapter(adapters)  # it takes longer to ask than to read a small file
    for name in sources:
        check_source(name)
    for name in sources:
        for source in open_sources(name, stdin=stdin, http=http, visited=visited):
            if isinstance(source, tuple):
                yield source
                continue
            yield from _readings(framed(source, line_adapter), _SourceReading(adapters, forced))


def read_lines(
    source: str,
    lines: Iterable[NumberedLine],
    adapters: Sequence[Adapter],
    *,
    forced: Adapter | None = None,
    at_once: bool = False,
) -> Iterator[PlacedReading | PlacedBatch]:
    """Read some of the lines of a source of JSON lines, as `read` does all of them.

    With `at_once` none waits for the next, which is for lines that are still being written.
    """
    yield from _readings(
        documents_in_lines(source, lines, None if at_once else _line_adapter(adapters)),
        _SourceReading(adapters, forced),
    )


def _line_adapter(adapters: Sequence[Adapter]) -> LineAdapter | None:
    return next((each for each in adapters if isinstance(each, LineAdapter)), None)


def _readings(
    items: Iterable[Framed | PlacedBatch], reading: "_SourceReading"
) -> Iterator[PlacedReading | PlacedBatch]:
    for item in items:
        if isinstance(item, tuple):
            yield item
        elif type(item) is JsonDocument and is_wrapped(item.value):
            for inner in unwrapped(item):
                if isinstance(inner, tuple):
                    yield inner
                else:
                    yield from reading.of(inner)
        else:
            yield from reading.of(item)
    yield from reading.finish()


class _SourceReading:
    """Finds the adapter of each document of one source, first asking the one that fitted last.

    As long as nothing is recognised, what is not is held back: a file that is of no known format at
    all is one bad record and not one for each of its lines.
    """

    def __init__(self, adapters: Sequence[Adapter], forced: Adapter | None) -> None:
        self._adapters = adapters
        self._forced = forced
        self._last: Adapter | None = None
        self._held: list[PlacedReading] | None = []

    def of(self, document: Document) -> Iterator[PlacedReading]:
        """Read the records of a document."""
        try:
            adapter = self._forced or self._adapter_of(document)
            if adapter is not None:
                if self._held is not None:
                    yield from self._release()
                yield from adapter.convert(document)
                return
        except OutriderError:
            raise
        except Exception as error:  # noqa: BLE001 - no content may stop the reading of the rest
            cause = f"{type(error).__name__}: {error}"[:MOST_SHOWN]
            yield document.place, BadRecord(f"unexpected content ({cause})")
            return
        if isinstance(document, JsonDocument) and _is_failure(document.value):
            yield document.place, NoMetrics("an error in place of an answer")
            return
        reason = f"not recognised: {_described(document)}; docs/report.md lists what is read"
        if self._held is None:
            yield document.place, BadRecord(reason)
            return
        self._held.append((document.place, BadRecord(reason)))
        if len(self._held) == MOST_HELD:
            yield from self._release()

    def finish(self) -> Iterator[PlacedReading]:
        """Read what is left at the end of the source."""
        if not self._held:
            return
        place, first = self._held[0]
        if len(self._held) > 1 and isinstance(first, BadRecord):
            first = BadRecord(
                f"{len(self._held)} records, none recognised; the first: {first.reason}"
            )
        yield place, first

    def _adapter_of(self, document: Document) -> Adapter | None:
        last = self._last
        if last is not None and last.recognises(document):
            return last
        for adapter in self._adapters:
            if adapter is not last and adapter.recognises(document):
                if isinstance(document, JsonDocument):
                    self._last = adapter
                return adapter
        return None

    def _release(self) -> Iterator[PlacedReading]:
        yield from self._held or ()
        self._held = None


def _is_failure(value: object) -> bool:
    return isinstance(value, dict) and (bool(value.get("error")) or value.get("object") == "error")


def _described(document: Document) -> str:
    if isinstance(document, FileDocument):
        return "a binary file"
    if isinstance(document, TextDocument):
        start = " ".join(document.head[: 4 * MOST_SHOWN].split())
        return f"text that begins {start[:MOST_SHOWN]!r}"
    value = document.value
    if isinstance(value, dict):
        names = ", ".join(repr(name) for name in islice(value, MOST_NAMES))
        return f"an object with {names[:MOST_SHOWN] or 'nothing'}"
    return f"a list of {len(value)}" if isinstance(value, list) else "a single value"
