"""Many records at once, for sources of millions."""

from collections.abc import Sequence
from dataclasses import dataclass

from outrider.records.numbers import IntArray, Numbers
from outrider.records.reading import AcceptanceRecord


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Valid records [n] of one K with their ids and lines.

    Records with the same values of all segment keys have the same number in `kinds` [n], the place
    of a record in `examples` that has these values too.
    """

    numbers: Numbers
    ids: Sequence[str]
    lines: Sequence[int]
    kinds: IntArray
    examples: Sequence[AcceptanceRecord]
