"""What a drafter proposes."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """The tokens proposed to each of B sequences, at most K each.

    `tokens` is int32 [B, K], padded with -1 from `lengths` int64 [B] on. `probabilities` is q
    [B, K, V], the distribution that each token was drawn from; None says that every token was
    proposed with certainty (q = 1 on it). A token chosen as the argmax of a drafter's
    distribution was not drawn from it: its q is None.
    """

    tokens: NDArray[np.int32]
    lengths: NDArray[np.int64]
    probabilities: torch.Tensor | None = None

    @classmethod
    def empty(cls, batch: int, k: int) -> Self:
        """Propose nothing to any of `batch` sequences, with room for `k` tokens each."""
        return cls(np.full((batch, k), -1, np.int32), np.zeros(batch, np.int64))

    def select(self, members: NDArray[np.bool_]) -> "Draft":
        """Keep the sequences that the mask `members` [B] marks."""
        q = self.probabilities
        return Draft(
            self.tokens[members],
            self.lengths[members],
            None if q is None else q[torch.from_numpy(members).to(q.device)],
        )
