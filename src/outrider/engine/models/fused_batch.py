"""The rows of a pass as the CPU kernels take them, checked, since the kernels check no bounds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

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
        np.asarray(field, np.int64)
        for field in (rows.token_ids, rows.positions, rows.sequences, rows.wanted)
    )
    tables = _dense(rows)
    _check(token_ids, positions, sequences, tables, rows, limits)
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


def _dense(rows: Rows) -> Array:
    """The block tables side by side [S, longest]; what a shorter one lacks is block 0."""
    longest = max(map(len, rows.block_tables), default=0)
    tables = np.zeros((len(rows.block_tables), longest), np.int64)
    for dense, table in zip(tables, rows.block_tables, strict=True):
        dense[: len(table)] = table
    return tables


def _check(
    token_ids: Array,
    positions: Array,
    sequences: Array,
    tables: Array,
    rows: Rows,
    limits: PassLimits,
) -> None:
    lengths = np.array([len(table) for table in rows.block_tables], np.int64)
    outside = "a row outside the model or its cache"
    for field, limit in (
        (token_ids, limits.vocab_size),
        (positions, limits.max_length),
        (sequences, len(tables)),
        (tables, limits.num_blocks),
    ):
        assert field.size > 0, outside
        assert field.min() >= 0, outside
        assert field.max() < limit, outside
    assert (positions < lengths[sequences] * SPAN).all(), outside
    same = np.diff(sequences) == 0
    assert (np.diff(positions)[same] > 0).all(), "rows of a sequence that do not ascend"


def _chunks(positions: Array, sequences: Array, limits: PassLimits) -> Array:
    """Where chunks of rows begin, and the number of rows; where they do changes no result."""
    count = len(positions)
    wanted = -(-_CHUNKS_PER_THREAD * limits.threads // limits.kv_heads)
    most = min(_CHUNK_ROWS, -(-count // wanted))
    changes = np.flatnonzero(np.diff(sequences)) + 1
    starts = []
    for start, end in zip((0, *changes), (*changes, count), strict=True):
        tokens = int(positions[end - 1]) + SPAN
        size = max(1, min(most, _CHUNK_SCORES // (limits.group * tokens)))
        parts = -(-(end - start) // size)
        starts += [start + (end - start) * part // parts for part in range(parts)]
    return np.array([*starts, count], np.int64)
