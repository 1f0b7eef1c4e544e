"""Large files of JSON lines in parts that can be read apart."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from outrider.records.sources.decoding import NotJson, decoded
from outrider.records.sources.sse import is_chunk
from outrider.records.sources.values import NumberedLine

RANGE_BYTES = 16 << 20
_LONGEST_LINE = 4 << 20


@dataclass(frozen=True, slots=True)
class LineRange:
    """The lines of a file that begin at `start` up to `end`, in bytes."""

    path: Path
    start: int
    end: int


def line_ranges(path: Path, range_bytes: int = RANGE_BYTES) -> list[LineRange]:
    """Return the ranges of a file, one or none where it is small or not made of JSON lines.

    Events of a stream belong together, so a file of them has none.
    """
    try:
        size = path.stat().st_size
        if not path.is_file() or size <= range_bytes:
            return []
        with path.open("rb") as file:
            if not all(_stands_alone(file.readline(_LONGEST_LINE)) for _ in range(2)):
                return []
            starts = [0]
            while starts[-1] + range_bytes < size:
                file.seek(starts[-1] + range_bytes)
                file.readline()
                starts.append(file.tell())
    except OSError:
        return []
    ends = [*starts[1:], size]
    return [
        LineRange(path, start, end) for start, end in zip(starts, ends, strict=True) if start < end
    ]


def lines_of(lines: LineRange, first_number: int = 1) -> Iterator[NumberedLine]:
    """Read the lines of a range with their numbers."""
    with lines.path.open("rb") as file:
        file.seek(lines.start)
        left = lines.end - lines.start
        number = first_number
        while left > 0:
            line = file.readline()
            left -= len(line)
            yield number, line
            number += 1


def _stands_alone(line: bytes) -> bool:
    try:
        value = decoded(line)
    except NotJson:
        return False
    return isinstance(value, dict) and not is_chunk(value)
