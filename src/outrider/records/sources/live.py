"""Lines that are still being written, each read as soon as it is there."""

import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from outrider.errors import InvalidSetting
from outrider.records.adapters.base import Adapter, PlacedReading
from outrider.records.reading import NoMetrics, Place
from outrider.records.sources.decoding import NotJson, decoded
from outrider.records.sources.document import TextDocument
from outrider.records.sources.fast_lines import PlacedBatch
from outrider.records.sources.reader import read_lines
from outrider.records.sources.values import NumberedLine

MOST_WAITING = 10_000
NOT_RECOGNISED = "a line of no format that is read"

_EVENT = (b"data:", b"event:")


def live_readings(
    source: str, lines: Iterable[NumberedLine], adapters: Sequence[Adapter]
) -> Iterator[PlacedReading | PlacedBatch]:
    """Read JSON lines, event streams or a log, whichever the first line that is known belongs to.

    Raises InvalidSetting for a page of counters, of which one alone makes no window.
    """
    lines = iter(lines)
    for number, line in lines:
        if line is None or not line.strip():
            continue
        rest = chain([(number, line)], lines)
        if _is_json(line):
            yield from read_lines(source, rest, adapters, at_once=True)
            return
        place, text = Place(source, number), _text(line)
        document = TextDocument(place, text, lambda rest=rest: _text_lines(rest))  # type: ignore[misc]
        adapter = next((each for each in adapters if each.recognises(document)), None)
        if adapter is None:
            yield place, NoMetrics(NOT_RECOGNISED)
        elif adapter.name == "prometheus":
            raise InvalidSetting(
                "a page of counters on standard input",
                "JSON lines or a log",
                "name its URL instead",
            )
        else:
            yield from adapter.convert(document)
            return


class StreamEnded(Exception):
    """Nothing more will come."""


class Arrivals:
    """Readings that a thread takes in, for whoever cannot wait for the next one."""

    def __init__(self, readings: Iterable[PlacedReading | PlacedBatch]) -> None:
        self._waiting: queue.Queue[PlacedReading | PlacedBatch | Exception] = queue.Queue(
            MOST_WAITING
        )
        # A daemon, since nothing can end its wait for a line that does not come.
        threading.Thread(target=self._take_in, args=(readings,), daemon=True).start()

    def take(self, timeout_s: float) -> PlacedReading | PlacedBatch | None:
        """Return the next reading, or None if none comes in time.

        Raises StreamEnded after the last, and whatever reading them raised.
        """
        try:
            arrived = self._waiting.get(timeout=max(0.0, timeout_s))
        except queue.Empty:
            return None
        if isinstance(arrived, Exception):
            raise arrived
        return arrived

    def _take_in(self, readings: Iterable[PlacedReading | PlacedBatch]) -> None:
        end: Exception = StreamEnded()
        try:
            for reading in readings:
                self._waiting.put(reading)
        except Exception as error:  # noqa: BLE001  raised where somebody can tell of it
            end = error
        self._waiting.put(end)


def _is_json(line: bytes) -> bool:
    if line.startswith(_EVENT):
        return True
    try:
        return isinstance(decoded(line), (dict, list))
    except NotJson:
        return False


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r\n")


def _text_lines(lines: Iterable[NumberedLine]) -> Iterator[tuple[int, str]]:
    for number, line in lines:
        if line is not None:
            yield number, _text(line)
