"""What a drafter proposes."""

from collections.abc import Collection
from dataclasses import dataclass, replace
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
    `log_odds` [B, K] are ln(q / (1 - q)) of the token that the drafter held most likely at each
    position, its confidence; None for a drafter without one. `matched_tokens` int64 [B] is how
    long a context was found again whose continuation this is; None where none is looked for.

    `lengths` may be lowered afterwards, to verify less. Where there is a q, whether a token stays
    may depend on what came before it, but not on the token itself or what follows: dropping drawn
    tokens for what they are shifts the output's distribution. Whoever drops those that a grammar
    forbids has to take them out of q as well, see `ConstrainedStep`.
    """

    tokens: NDArray[np.int32]
    lengths: NDArray[np.int64]
    probabilities: torch.Tensor | None = None
    log_odds: NDArray[np.float64] | None = None
    matched_tokens: NDArray[np.int64] | None = None

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
            None if self.log_odds is None else self.log_odds[members],
            None if self.matched_tokens is None else self.matched_tokens[members],
        )

    def cut(self, lengths: NDArray[np.int64]) -> "Draft":
        """Keep the first `lengths` [B] tokens of each sequence, none more than it has."""
        tokens = self.tokens.copy()
        for row, length in enumerate(lengths.tolist()):
            tokens[row, length:] = -1
        return replace(self, tokens=tokens, lengths=lengths)

    def without(self, rows: Collection[int]) -> "Draft":
        """Propose nothing to the sequences in `rows`, whose draft cannot be used."""
        lengths = self.lengths.copy()
        lengths[list(rows)] = 0
        return self.cut(lengths)
