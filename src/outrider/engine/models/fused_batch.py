"""The rows of a pass as the CPU kernels take them, checked, since the kernels check no bounds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from outrider.engine.compiling import compiled
from outrider.engine.kernels.arguments import SPAN, Batch
from outrider.engine.models.base import Rows

Array = np.ndarray[Any, np.dtype[Any]]

PASS_ROWS = 192
"""Rows of one kernel call: enough to be bound by arithmetic, few enough to stay in cache."""

_CHUNK_ROWS = 16
"""Rows of a sequence that attend together at most: enough to share what they load."""

_CHUNK_SCORES = 1 << 17
"""Scores of a chunk at most, though one row is always allowed: half a MiB, which caches hold."""

_CHUNKS_PER_THREAD = 3
"""Pieces of attention that a thread should find where there are rows enough, to share evenly."""


@dataclass(frozen=True, slots=True)
class PassLimits:
    """What token ids, positions and blocks have to stay below, and what decides the chunks."""

    vocab_size: int
    max_length: int
    num_blocks: int
    kv_heads: int
    group: int
    threads: int


def batches(rows: Rows, limits: PassLimits) -> Iterator[tuple[Batch, slice]]:
    """`rows` in passes of `PASS_ROWS`, each with its place among the wanted rows."""
    token_ids, positions, sequences, wanted = (
        np.ascontiguousarray(field, np.int64)
        for field in (rows.token_ids, rows.positions, rows.sequences, rows.wanted)
    )
    tables, lengths = _dense(rows)
    within = (limits.vocab_size, limits.max_length, limits.num_blocks)
    assert _are_inside(token_ids, positions, sequences, tables, lengths, within), (
        "a row outside the model or its cache"
    )
    assert _ascend(positions, sequences), "rows of a sequence that do not ascend"
    for start in range(0, len(token_ids), PASS_ROWS):
        part = slice(start, min(start + PASS_ROWS, len(token_ids)))
        first, last = np.searchsorted(wanted, (part.start, part.stop))
        batch = Batch(
            token_ids[part],
            positions[part],
            sequences[part],
            tables,
            _chunks(positions[part], sequences[part], limits),
            wanted[first:last] - start,
        )
        yield batch, slice(first, last)


def _dense(rows: Rows) -> tuple[Array, Array]:
    """The block tables side by side [S, longest], and the length of each.

    What a shorter one lacks is block 0.
    """
    lengths = [len(table) for table in rows.block_tables]
    longest = max(lengths, default=0)
    tables = [[*table, *[0] * (longest - len(table))] for table in rows.block_tables]
    return np.array(tables, np.int64).reshape(len(tables), longest), np.array(lengths, np.int64)


@compiled()
def _are_inside(
    token_ids: Any, positions: Any, sequences: Any, tables: Any, lengths: Any, limits: Any
) -> Any:
    """Whether there are rows, and all tokens, positions and blocks are the model's."""
    vocab_size, max_length, num_blocks = limits
    for r in range(len(token_ids)):
        if not (0 <= token_ids[r] < vocab_size and 0 <= sequences[r] < len(tables)):
            return False
        if not 0 <= positions[r] < min(max_length, lengths[sequences[r]] * SPAN):
            return False
    for table in tables:
        for block in table:
            if not 0 <= block < num_blocks:
                return False
    return len(token_ids) > 0


@compiled()
def _ascend(positions: Any, sequences: Any) -> Any:
    """Whether the rows of each sequence do, as far as they are adjacent."""
    for r in range(1, len(positions)):
        if sequences[r] == sequences[r - 1] and positions[r] <= positions[r - 1]:
            return False
    return True


def _chunks(positions: Array, sequences: Array, limits: PassLimits) -> Array:
    """Where chunks of rows begin, and the number of rows; where they do changes no result."""
    wanted = -(-_CHUNKS_PER_THREAD * limits.threads // limits.kv_heads)
    most = min(_CHUNK_ROWS, -(-len(positions) // wanted))
    starts = np.empty(len(positions) + 1, np.int64)
    return starts[: _fill_chunks(positions, sequences, most, limits.group, starts)]


@compiled()
def _fill_chunks(positions: Any, sequences: Any, most: int, group: int, starts: Any) -> Any:
    """Fills in where chunks of up to `most` rows begin, and their end; returns how many that is."""
    count, found, start = len(positions), 0, 0
    while start < count:
        end = start + 1
        while end < count and sequences[end] == sequences[start]:
            end += 1
        tokens = positions[end - 1] + SPAN
        size = max(1, min(most, _CHUNK_SCORES // (group * tokens)))
        parts = (end - start + size - 1) // size
        for part in range(parts):
            starts[found] = start + (end - start) * part // parts
            found += 1
        start = end
    starts[found] = count
    return found + 1
