"""Which row of the target's logits judges which token of a draft."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.drafting.draft import Draft


@dataclass(frozen=True, slots=True, eq=False)
class DraftRows:
    """The R = sum(lengths + 1) rows of a draft, each sequence's in a run.

    `owned` bool [B, K + 1] marks the cells that have a row, in the order of the rows; `drafted`
    int32 [R] is the token that each row judges, -1 where there is none: in the row after the
    last token, and for a token that was taken back. `first` int64 [B] is each sequence's first
    row, `last` its last.
    """

    owned: NDArray[np.bool_]
    drafted: NDArray[np.int32]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    @classmethod
    def of(cls, draft: Draft) -> Self:
        """Lay out the rows of `draft`."""
        batch, k = draft.tokens.shape
        owned = np.arange(k + 1) <= draft.lengths[:, None]
        cells = np.full((batch, k + 1), -1, np.int32)
        cells[:, :k] = np.where(owned[:, 1:], draft.tokens, -1)
        counts = draft.lengths + 1
        ends = counts.cumsum()
        return cls(owned, cells[owned], ends - counts, ends - 1)

    def accepted(self, accepts: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return int64 [B], how many of each sequence's rows accept before the first that does not.

        `accepts` is bool [R], false wherever `drafted` is -1.
        """
        cells = np.zeros(self.owned.shape, np.bool_)
        cells[self.owned] = accepts
        lengths: NDArray[np.int64] = cells.argmin(axis=1)
        return lengths

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """Return [B, K + 1], the `values` [R] of the rows in their cells, 0 elsewhere."""
        cells = values.new_zeros(self.owned.shape)
        cells[torch.from_numpy(self.owned).to(values.device)] = values
        return cells

    def gather(self, cells: torch.Tensor) -> torch.Tensor:
        """Return [R, ...], the `cells` [B, K + 1, ...] that have a row."""
        return cells[torch.from_numpy(self.owned).to(cells.device)]

    def flatten(self, q: torch.Tensor) -> torch.Tensor:
        """Return [R, V], the rows of `q` [B, K, V], with 0 after a draft of K tokens."""
        padded = torch.nn.functional.pad(q, (0, 0, 0, 1))
        return self.gather(padded)
