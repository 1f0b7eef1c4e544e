"""The rows of sequences above temperature 0, with everything that a random rule looks at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import Sampling, draw, target_distribution
from outrider.engine.verification.rejection import residual
from outrider.engine.verification.rows import DraftRows


@dataclass(frozen=True, slots=True, eq=False)
class RandomRows:
    """The target's p, the draft's q, the drafted tokens and the uniforms, one row each.

    `p` is [R, V]; `q` [R, V], 0 in a sequence's last row, or None for point masses; `drafted`
    int64 [R], -1 where a row judges no token; `u` float64 [R] in [0, 1): one uniform to test each
    drafted token, then one for the bonus token.
    """

    layout: DraftRows
    p: torch.Tensor
    q: torch.Tensor | None
    drafted: torch.Tensor
    u: torch.Tensor

    @classmethod
    def of(cls, logits: torch.Tensor, draft: Draft, sampling: Sequence[Sampling]) -> Self:
        """Lay out `draft` against `logits` [R, V] and draw from each sequence's generator."""
        layout = DraftRows.of(draft)
        return cls(
            layout,
            p=row_distributions(logits, draft, sampling),
            q=None if draft.probabilities is None else layout.flatten(draft.probabilities),
            drafted=torch.from_numpy(layout.drafted).to(logits.device, torch.int64),
            u=row_uniforms(draft, sampling).to(logits.device),
        )

    def bonus(
        self, accepted: NDArray[np.int64], weight: torch.Tensor | None = None
    ) -> NDArray[np.int32]:
        """Draw int32 [B], the token after each sequence's `accepted` [B] ones.

        It follows max(w p - q, 0) after a rejection and p after a whole draft; `weight` [R] holds
        w, which is 1 for every rule but block verification.
        """
        first, last = self.layout.first, self.layout.last
        stop = torch.from_numpy(first + accepted).to(self.p.device)
        p = self.p[stop] if weight is None else self.p[stop] * weight[stop].unsqueeze(-1).float()
        rest = residual(p, None if self.q is None else self.q[stop], self.drafted[stop])
        tokens = draw(rest, self.u[torch.from_numpy(last).to(self.u.device)])
        return tokens.to(torch.int32).cpu().numpy()


def row_distributions(
    logits: torch.Tensor, draft: Draft, sampling: Sequence[Sampling]
) -> torch.Tensor:
    """Return the target's p float32 [R, V], each row of `logits` [R, V] as its sequence asks."""
    counts = (draft.lengths + 1).tolist()
    parameters = [
        each.parameters for each, count in zip(sampling, counts, strict=True) for _ in range(count)
    ]
    return target_distribution(logits, parameters)


def row_uniforms(draft: Draft, sampling: Sequence[Sampling]) -> torch.Tensor:
    """Draw float64 [R] from [0, 1), one for each row of `draft`, from its sequence's generator.

    A sequence draws as many as it has rows whatever is accepted.
    """
    counts = (draft.lengths + 1).tolist()
    return torch.cat([each.uniforms(n) for each, n in zip(sampling, counts, strict=True)])
