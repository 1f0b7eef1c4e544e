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

EXPLORING_SHARE = 0.01
"""The most of the steps' time that goes into tokens which do not seem to pay, or what is never
verified could never prove itself."""


PATIENCE_STEPS, PAUSE_STEPS = 8, 3
"""After so many steps in a row whose drafts did not pay at all, none is made in the next three: to
draft and to weigh takes 2 % of a step of 16 requests on two cores."""


class AdaptiveVerification:
    """Trims drafts by what `cost` says of their rows and by how often such drafts were accepted.

    A drafter's own log-odds tell how sure it is of a token. Where it has none, the request's track
    record stands in: of one that copies its prompt, lookups are accepted again and again. What
    either is worth at each position is learned for all requests together. Where the share for
    exploring has saved enough, one request, a different one each time, has one token more verified
    than seems to pay. Where no draft has paid for long, most steps are without any. `k` is the most
    tokens that a draft has.
    """

    def __init__(self, cost: CostCurve, k: int) -> None:
        self.cost = cost
        self._k = k
        self._estimator = AcceptanceEstimator.start(k)
        self._records: WeakKeyDictionary[Sequence, TrackRecord] = WeakKeyDictionary()
        self._saved_s = 0.0
        self._explored = 0
        self._unpaid_steps = 0
        self._pause_steps = 0

    def drafts_now(self) -> bool:
        """Whether to draft in the step that begins; it depends on nothing that the step draws."""
        if self._pause_steps == 0:
            return True
        self._pause_steps -= 1
        return False

    def trim(
        self, batch: Batch[Sequence], draft: Draft, *, plain_rows: int, spent_s: float
    ) -> Draft:
        """Return the part of `draft` to verify in a step of `plain_rows` rows without it."""
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
        self._unpaid_steps = 0 if lengths.any() else self._unpaid_steps + 1
        if self._unpaid_steps >= PATIENCE_STEPS:
            self._pause_steps = PAUSE_STEPS
        self._explore(draft, lengths, plain_rows + int(lengths.sum()))
        return draft.cut(lengths)

    def _explore(self, draft: Draft, lengths: NDArray[np.int64], rows: int) -> None:
        """Lengthen one of `lengths` [B], which make a step of `rows` rows, where that is due."""
        step_s, longer_s = self.cost.cost_s(np.array([rows, rows + 1])).tolist()
        # What cannot be spent does not pile up beyond a step.
        self._saved_s = min(self._saved_s + EXPLORING_SHARE * step_s, step_s)
        shortened = np.flatnonzero(lengths < draft.lengths)
        if len(shortened) and longer_s - step_s <= self._saved_s:
            self._saved_s -= longer_s - step_s
            self._explored += 1
            lengths[shortened[self._explored % len(shortened)]] += 1

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
