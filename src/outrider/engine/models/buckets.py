"""Batches of few rows for each sequence, filled up to one of few shapes."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor

from outrider.engine.models.base import BLOCK_TOKENS, Rows, blocks_for
from outrider.engine.models.paged_rows import PagedRows, row_group

SEQUENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
ROWS_EACH = (1, 2, 3, 5, 9, 17)
"""A last token, and a draft of up to 0, 1, 2, 4, 8 or 16."""
LEAST_TOKENS = 256
MOST_ROWS = 512
"""Of a whole batch: with more, arithmetic takes the time, and rows that only fill up cost some."""
MOST_CACHED = 2**18
"""Tokens that a whole batch reads: their keys and values are laid side by side, layer by layer."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A shape: S sequences with N rows each, which read T tokens in whole blocks of the cache."""

    sequences: int
    rows_each: int
    tokens: int

    @property
    def rows(self) -> int:
        """All rows R."""
        return self.sequences * self.rows_each

    @property
    def blocks(self) -> int:
        """The blocks B of a sequence."""
        return self.tokens // BLOCK_TOKENS


class Buckets:
    """The shapes for sequences of up to `max_length` tokens.

    Block `dump` of the cache is nobody's: rows that only fill up write there.
    """

    def __init__(self, *, max_length: int, dump: int) -> None:
        self.dump = dump
        longest = blocks_for(max_length) * BLOCK_TOKENS
        doubled = [LEAST_TOKENS]
        while doubled[-1] < longest:
            doubled.append(2 * doubled[-1])
        self._tokens = (*doubled[:-1], longest)
        each = (Bucket(*sizes) for sizes in product(SEQUENCES, ROWS_EACH, self._tokens))
        self.all = frozenset(
            bucket
            for bucket in each
            if bucket.rows <= MOST_ROWS and bucket.sequences * bucket.tokens <= MOST_CACHED
        )

    def fitting(self, sequences: int, rows_each: int, tokens: int) -> Bucket | None:
        """Return the smallest with room; None where there is none, as for a piece of a prompt."""
        bucket = Bucket(
            _least(SEQUENCES, sequences), _least(ROWS_EACH, rows_each), _least(self._tokens, tokens)
        )
        return bucket if bucket in self.all else None


@dataclass(frozen=True, slots=True)
class PaddedRows:
    """A batch of the shape `bucket`, as int64 `numbers` [4 R + S B] on the host.

    These are the token, the position and the place in the cache of each row, the wanted rows, and
    the block tables.
    """

    bucket: Bucket
    numbers: Tensor


def padded_rows(rows: Rows, buckets: Buckets) -> PaddedRows | None:
    """Fill `rows` up to the shape of a bucket; None where none has room for them.

    Row r of the n-th sequence becomes row n N + r. What is missing of a sequence repeats its last
    row, what is missing of the batch are rows of the dump.
    """
    # numpy, since on so few numbers each operator of torch takes many times as long.
    token_ids, positions, sequences = (
        np.array(column, np.int64) for column in (rows.token_ids, rows.positions, rows.sequences)
    )
    starts = np.flatnonzero(np.diff(sequences, prepend=-1))
    counts = np.diff(starts, append=len(sequences))
    bucket = buckets.fitting(len(starts), int(counts.max()), int(positions.max()) + 1)
    if bucket is None:
        return None
    owners = np.arange(len(starts)).repeat(counts)
    filled = np.arange(len(sequences)) - starts[owners] + owners * bucket.rows_each
    repeated = starts[:, None] + np.minimum(np.arange(bucket.rows_each), counts[:, None] - 1)
    numbers = np.zeros(4 * bucket.rows + bucket.sequences * bucket.blocks, np.int64)
    columns = numbers[: 4 * bucket.rows].reshape(4, bucket.rows)
    tables = numbers[4 * bucket.rows :].reshape(bucket.sequences, bucket.blocks)
    tables[:] = buckets.dump
    for row, sequence in zip(tables, sequences[starts].tolist(), strict=False):
        table = rows.block_tables[sequence][: bucket.blocks]
        row[: len(table)] = table
    blocks, offsets = np.divmod(positions, BLOCK_TOKENS)
    columns[0, : repeated.size] = token_ids[repeated].ravel()
    columns[1, : repeated.size] = positions[repeated].ravel()
    columns[2] = buckets.dump * BLOCK_TOKENS
    columns[2, filled] = tables[owners, blocks] * BLOCK_TOKENS + offsets
    columns[3, : len(rows.wanted)] = filled[np.array(rows.wanted, np.int64)]
    return PaddedRows(bucket, torch.from_numpy(numbers))


def paged_bucket(numbers: Tensor, bucket: Bucket, windows: Iterable[int]) -> PagedRows:
    """What `paged_rows` makes of a batch, made on a device of the `numbers` of `PaddedRows`.

    Of the wanted rows the first are those of the batch.
    """
    token_ids, positions, places, wanted = numbers[: 4 * bucket.rows].view(4, bucket.rows)
    tables = numbers[4 * bucket.rows :].view(bucket.sequences, bucket.blocks)
    shape = (bucket.sequences, bucket.rows_each)
    group = row_group(
        torch.arange(bucket.rows, device=numbers.device).view(shape),
        positions.view(shape),
        tables,
        bucket.tokens,
        windows,
    )
    return PagedRows(token_ids, positions, places, (group,), wanted)


def _least(sizes: Iterable[int], needed: int) -> int:
    """The first of the ascending `sizes` that is enough, or 0."""
    return next((size for size in sizes if size >= needed), 0)
