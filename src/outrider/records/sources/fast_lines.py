"""Plain lines of JSON that an adapter reads by the thousand."""

from collections.abc import Iterator
from typing import Any

from outrider.records.adapters.base import LineAdapter
from outrider.records.batch import RecordBatch
from outrider.records.reading import Place

PlacedBatch = tuple[Place, RecordBatch]

BATCH = 4096
WORTH_IT = 16
"""Fewer lines are read as fast one by one."""
PATIENCE = 256
"""How many more lines may be tried in vain than not, before no more are tried."""


class FastLines:
    """Gathers the lines that an adapter can read by the thousand, as long as most are such."""

    def __init__(self, source: str, adapter: LineAdapter | None) -> None:
        self._source = source
        self._adapter = adapter
        self._spare = PATIENCE
        self._kept: list[tuple[int, bytes, Any]] = []

    def takes(self, number: int, line: bytes) -> bool:
        """Whether the line is kept for the next batch."""
        if self._adapter is None:
            return False
        plain = self._adapter.plain_line(line)
        if plain is not None:
            self._kept.append((number, line, plain))
            return True
        self._spare -= 1
        if self._spare < -len(self._kept):
            self._adapter = None
        return False

    @property
    def full(self) -> bool:
        """Whether it is time to read what was kept."""
        return len(self._kept) >= BATCH

    def drained(self) -> tuple[list[PlacedBatch], Iterator[tuple[int, bytes]]]:
        """Return what was kept as batches, and the lines that have to be read one by one."""
        kept, self._kept = self._kept, []
        if not kept:
            return [], iter(())
        if self._adapter is None or len(kept) < WORTH_IT:
            return [], ((number, line) for number, line, _ in kept)
        batches, left = self._adapter.batches(
            [plain for *_, plain in kept], [number for number, *_ in kept]
        )
        self._spare = PATIENCE
        placed = [(Place(self._source, batch.lines[0]), batch) for batch in batches]
        return placed, (kept[place][:2] for place in left)
