"""How often each token has come, kept up as tokens come, in memory that grows with their kinds."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class TokenCounts:
    """The distinct tokens of one sequence and how often each is in its output."""

    def __init__(self) -> None:
        self._column_of: dict[int, int] = {}
        self._ids = np.empty(64, np.int64)
        self._counts = np.empty(64, np.float32)

    def see(self, tokens: Iterable[int]) -> None:
        """Take note of `tokens`, which are not output."""
        for token in tokens:
            self._column(token)

    def add(self, tokens: Iterable[int]) -> None:
        """Count `tokens`, which are output."""
        for token in tokens:
            # The column first: finding it may replace the array.
            column = self._column(token)
            self._counts[column] += 1

    def with_draft(
        self, drafted: Iterable[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.bool_]]:
        """The distinct tokens [U], how often each came [d + 1, U], whether it did [d + 1, U].

        Row i counts the first i of the d drafted tokens as output; -1 is no token.
        """
        draft = list(drafted)
        known = len(self._column_of)
        new = dict.fromkeys(each for each in draft if each >= 0 and each not in self._column_of)
        column_of = {token: known + i for i, token in enumerate(new)}
        ids = np.append(self._ids[:known], np.array(list(new), np.int64))
        counts = np.zeros((len(draft) + 1, len(ids)), np.float32)
        counts[:, :known] = self._counts[:known]
        for i, token in enumerate(draft):
            if token >= 0:
                counts[i + 1 :, column_of.get(token, self._column_of.get(token, 0))] += 1
        came = counts > 0
        came[:, :known] = True
        return ids, counts, came

    def _column(self, token: int) -> int:
        column = self._column_of.get(token)
        if column is None:
            column = self._column_of[token] = len(self._column_of)
            if column == len(self._ids):
                self._ids = np.concatenate([self._ids, np.empty_like(self._ids)])
                self._counts = np.concatenate([self._counts, np.empty_like(self._counts)])
            self._ids[column] = token
            self._counts[column] = 0
        return column
