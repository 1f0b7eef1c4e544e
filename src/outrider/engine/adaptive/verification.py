"""Adaptive verification: each step verifies as much of the drafts as pays."""

from collections.abc import Sequence as Batch
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from outrider.engine.adaptive.acceptance_estimator import AcceptanceEstimator
from outrider.engine.adaptive.budget import survivals, verified_lengths
from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.track_record import TrackRecord
from outrider.engine.drafting.draft import Draft
from outrider.engine.sequence import Sequence

LOOK_EVERY = 16
"""Of so many steps with a draft one verifies at least its first token, or what is never verified
could never prove itself. At 1.05 plain steps for a second row this costs 0.3 %."""
EXPLORE_EVERY = 64
"""Of so many one verifies all of it: at 1.5 plain steps for a full draft, 0.8 %."""


class AdaptiveVerification:
    """Trims drafts by what `cost` says of their rows and by how often such drafts were accepted.

    A drafter's own log-odds tell how sure it is of a token. Where it has none, the request's track
    record stands in: of one that copies its prompt, lookups are accepted again and again. What
    either is worth at each position is learned for all requests together. `k` is the most tokens
    that a draft has.
    """

    def __init__(self, cost: CostCurve, k: int) -> None:
        self.cost = cost
        self._k = k
        self._estimator = AcceptanceEstimator.start(k)
        self._records: WeakKeyDictionary[Sequence, TrackRecord] = WeakKeyDictionary()
        self._steps = 0

    def trim(
        self, batch: Batch[Sequence], draft: Draft, *, plain_rows: int, spent_s: float
    ) -> Draft:
        """Return the part of `draft` to verify in a step of `plain_rows` rows without it."""
        self._steps += 1
        if self._steps % EXPLORE_EVERY == 0:
            return draft
        confidence = self._estimator.confidence(self._log_odds(batch, draft))
        width = draft.tokens.shape[1]
        lengths = verified_lengths(
            survivals(confidence[:, :width], draft.lengths),
            plain_rows=plain_rows,
            sampling=len(draft.lengths),
            spent_s=spent_s,
            cost=self.cost,
            in_order=draft.probabilities is not None,
        )
        if self._steps % LOOK_EVERY == 0:
            lengths = np.maximum(lengths, np.minimum(draft.lengths, 1))
        return draft.cut(lengths)

    def learn(self, batch: Batch[Sequence], draft: Draft, accepted: NDArray[np.int64]) -> None:
        """Learn from what was verified, `draft`, and how much of it was `accepted` [B]."""
        if not draft.lengths.any():
            return
        log_odds = self._log_odds(batch, draft)
        self._estimator = self._estimator.observed(log_odds, draft.lengths, accepted)
        for sequence, verified, right in zip(
            batch, draft.lengths.tolist(), accepted.tolist(), strict=True
        ):
            if verified:
                record = self._records.get(sequence, TrackRecord())
                self._records[sequence] = record.after(verified, right)

    def _log_odds(self, batch: Batch[Sequence], draft: Draft) -> NDArray[np.float64]:
        """Those of the draft, or of each request's track record, [B, K]."""
        log_odds = np.zeros((len(batch), self._k))
        if draft.log_odds is not None:
            log_odds[:, : draft.tokens.shape[1]] = draft.log_odds
        else:
            records = [self._records.get(sequence, TrackRecord()) for sequence in batch]
            log_odds[:] = np.array([record.log_odds for record in records])[:, None]
        return log_odds
