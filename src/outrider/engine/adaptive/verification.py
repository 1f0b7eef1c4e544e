"""Adaptive verification: each step verifies as much of the drafts as pays."""

import numpy as np
from numpy.typing import NDArray

from outrider.engine.adaptive.acceptance_estimator import AcceptanceEstimator
from outrider.engine.adaptive.budget import survivals, verified_lengths
from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.drafting.draft import Draft

EXPLORE_EVERY = 64
"""Of so many steps with a draft one verifies all of it, or nothing could be learned about what is
never verified. At a step cost of 1.5 plain steps for a full draft this costs 0.8 %."""


class AdaptiveVerification:
    """Trims drafts by what `cost` says of their rows and by how often such drafts were accepted.

    Where a drafter gives no log-odds of its own, a position's confidence is learned from what
    became of earlier drafts there. `k` is the most tokens that a draft has.
    """

    def __init__(self, cost: CostCurve, k: int) -> None:
        self.cost = cost
        self._k = k
        self._estimator = AcceptanceEstimator.start(k)
        self._steps = 0

    def trim(self, draft: Draft, *, plain_rows: int, spent_s: float) -> Draft:
        """Return the part of `draft` to verify in a step of `plain_rows` rows without it."""
        self._steps += 1
        if self._steps % EXPLORE_EVERY == 0:
            return draft
        confidence = self._estimator.confidence(self._log_odds(draft))
        width = draft.tokens.shape[1]
        lengths = verified_lengths(
            survivals(confidence[:, :width], draft.lengths),
            plain_rows=plain_rows,
            sampling=len(draft.lengths),
            spent_s=spent_s,
            cost=self.cost,
            in_order=draft.probabilities is not None,
        )
        return draft.cut(lengths)

    def learn(self, draft: Draft, accepted: NDArray[np.int64]) -> None:
        """Learn from what was verified, `draft`, and how much of it was `accepted` [B]."""
        if draft.lengths.any():
            log_odds = self._log_odds(draft)
            self._estimator = self._estimator.observed(log_odds, draft.lengths, accepted)

    def _log_odds(self, draft: Draft) -> NDArray[np.float64]:
        """Those of the draft, [B, K], 0 where the drafter has none."""
        batch, width = draft.tokens.shape
        log_odds = np.zeros((batch, self._k))
        if draft.log_odds is not None:
            log_odds[:, :width] = draft.log_odds
        return log_odds
