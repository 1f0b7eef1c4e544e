"""Sums over records that can be resampled, merged, and held in bounded memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self
from zlib import crc32

import numpy as np

from outrider.acceptance.columns import Columns, columns_of
from outrider.acceptance.intervals import FloatArray

MOST_CLUSTERS = 256
"""Beyond this many rows neighbours are added: fewer, larger clusters, as valid as before."""
MOST_NAMES = 4096
"""Clusters that are told apart by name; more share the rows of these."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums of some records of one K: `rows` [clusters, columns], one per bootstrap cluster.

    What is small enough has a row for every record, in the order of arrival; the rows of a long
    stream hold ever more neighbouring records each, all about as many, so that memory stays bounded
    while the sums stay exact. The last rows are those of the clusters in `names`, which gather all
    records of that name. Counts up to 2**53 are exact. `longest_gap_ms` is a maximum, which no sum
    gives, None where no record tells.
    """

    columns: Columns
    rows: FloatArray
    names: tuple[str, ...] = ()
    longest_gap_ms: float | None = None

    @classmethod
    def empty(cls, k: int) -> Self:
        """Return totals of nothing, for one K (0: unknown)."""
        columns = columns_of(k)
        return cls(columns, np.zeros((0, columns.width)))

    def with_rows(
        self,
        rows: FloatArray,
        names: Sequence[str | None] | None = None,
        longest_gap_ms: float | None = None,
    ) -> Self:
        """Return the totals with more rows; those with a name are added to their cluster.

        `longest_gap_ms` is the longest gap of all these rows.
        """
        if names is None or not any(names):
            anonymous, named = rows, rows[:0]
            named_as: list[str] = []
        else:
            has_name = np.array([name is not None for name in names])
            anonymous, named = rows[~has_name], rows[has_name]
            named_as = [name for name in names if name is not None]
        first_named = len(self.rows) - len(self.names)
        kept = bounded(np.concatenate([self.rows[:first_named], anonymous]), self.columns)
        clusters = dict(zip(self.names, self.rows[first_named:], strict=True))
        for name, row in zip(named_as, named, strict=True):
            if name not in clusters and len(clusters) >= MOST_NAMES:
                # A cluster of several names is a larger cluster, and as independent of the others.
                name = [*clusters][crc32(name.encode()) % MOST_NAMES]  # noqa: PLW2901
            clusters[name] = clusters[name] + row if name in clusters else row
        return type(self)(
            self.columns,
            np.concatenate([kept, *(r[None] for r in clusters.values())]),
            tuple(clusters),
            _longest(self.longest_gap_ms, longest_gap_ms),
        )

    def merged(self, other: Self) -> Self:
        """Return the totals of both; ValueError for different K, which are never added."""
        if self.columns.k != other.columns.k:
            raise ValueError(
                f"totals of K = {self.columns.k} and {other.columns.k}; expected one K"
            )
        anonymous = len(other.rows) - len(other.names)
        names = [*(None,) * anonymous, *other.names]
        return self.with_rows(other.rows, names, other.longest_gap_ms)

    @property
    def sums(self) -> FloatArray:
        """The sum of all rows, [columns]."""
        total: FloatArray = self.rows.sum(axis=0)
        return total

    def count(self, name: str) -> int:
        """Return the sum of a scalar column that counts."""
        return int(self.rows[:, self.columns[name]].sum())

    def counts(self, name: str) -> tuple[int, ...]:
        """Return the sums of the columns of a vector."""
        return tuple(int(n) for n in self.rows[:, self.columns.slice(name)].sum(axis=0))


def _longest(*gaps_ms: float | None) -> float | None:
    return max((gap for gap in gaps_ms if gap is not None), default=None)


def bounded(rows: FloatArray, columns: Columns, most: int = MOST_CLUSTERS) -> FloatArray:
    """Return at most `most` rows with the same sums, neighbours added so that none is much larger.

    A row ends once it holds a fair share of all records, twice the average: each then has between
    one and two such shares, whatever the rows held before.
    """
    if len(rows) <= most:
        return rows
    records = rows[:, columns["records"]]
    before = np.cumsum(records) - records
    share = 2 * records.sum() / most
    starts = np.flatnonzero(np.diff(before // share, prepend=-1))
    summed: FloatArray = np.add.reduceat(rows, starts, axis=0)
    return summed
