"""Adaptive verification: each step verifies as much of the drafts as pays."""

from collections.abc import Sequence as Batch

import numpy as np
from numpy.typing import NDArray

from outrider.engine.adaptive.acceptance_estimator import AcceptanceEstimator
from outrider.engine.adaptive.budget import Budget, best_budget
from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.draft_length import DraftLength
from outrider.engine.adaptive.draft_plan import best_plan
from outrider.engine.adaptive.step_costs import StepCosts
from outrider.engine.adaptive.track_records import TrackRecords
from outrider.engine.drafting.draft import Draft
from outrider.engine.sequence import Sequence

EXPLORING_SHARE = 0.004
"""The most of the steps' time that goes into tokens which do not seem to pay, or what is never
verified could never prove itself."""


class AdaptiveVerification:
    """Trims drafts by what their rows cost and by how often such drafts were accepted.

    Costs begin with `cost` and follow what steps take. A drafter's own log-odds tell how sure it is
    of a token; where it has none, track records stand in. What either is worth at each position is
    learned for all requests together. Where the share for exploring has saved enough, one request,
    a different one each time, has one token more verified than seems to pay. How many tokens are
    drafted at all, `k` at most, is for `DraftLength` to say.
    """

    def __init__(self, cost: CostCurve, k: int) -> None:
        self._costs = StepCosts(cost)
        self._k = k
        self._estimator = AcceptanceEstimator.start(k)
        self._records = TrackRecords()
        self._log_odds = np.zeros((0, k))  # of the draft that was trimmed last
        self._saved_s = 0.0
        self._explorations = 0
        self._step_s = 0.0
        self._plain_rows = 1
        self._length = DraftLength(k)
        self._no_budget = Budget.nothing(0, k)
        # Compiles, before there is a request to wait for it.
        unsure, nothing = np.zeros((1, k)), np.zeros(1, np.int64)
        best_budget(unsure, nothing, plain_rows=1, sampling=1, spent_s=0.0, cost=cost)
        expected = self._estimator.expected(unsure)
        best_plan(expected, nothing, nothing, plain_rows=1, rate=1.0, token_s=0.0, cost=cost)

    @property
    def cost(self) -> CostCurve:
        """What steps are thought to cost."""
        return self._costs.curve

    def took(self, rows: int, seconds: float) -> None:
        """Learn that a step of `rows` rows, one of each request and its drafts, took so long.

        Drafting is left out, whatever else depends on the rows is not.
        """
        self._costs.observe(rows, seconds)

    def draft_length(self, most: int, *, plain_rows: int) -> int:
        """How many tokens to draft in the step that begins, of the `most` that can be used.

        It has `plain_rows` rows without them. Nothing that the step draws decides.
        """
        self._plain_rows = plain_rows
        length = self._length.choose(most)
        if length == 0:
            self._save(self._step_s)
        return length

    def going_on(
        self,
        log_odds: NDArray[np.float64],
        drafted: NDArray[np.int64],
        most: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """See `DraftJudge`.

        Where no draft pays, the share for exploring pays for one from time to time.
        """
        cost, token_s = self.cost, self._length.token_s
        planned = best_plan(
            self._estimator.expected(log_odds),
            drafted,
            most,
            plain_rows=self._plain_rows,
            rate=self._length.best_rate * len(drafted) / cost.step_s(self._plain_rows),
            token_s=token_s,
            cost=cost,
        )
        further: NDArray[np.bool_] = planned > drafted
        if token_s <= self._saved_s and not further.any():
            self._saved_s -= token_s
            self._explorations += 1
            able = np.flatnonzero(most > drafted)
            further[able[self._explorations % len(able)]] = True
        return further

    def trim(
        self, batch: Batch[Sequence], draft: Draft, *, plain_rows: int, spent_s: float
    ) -> Draft:
        """Return the part of `draft`, of the length asked for, to verify.

        The step has `plain_rows` rows without it, and drafting took `spent_s`.
        """
        plain_s = self.cost.step_s(plain_rows)
        if not draft.lengths.any():
            self._length.observe(
                self._no_budget, draft.lengths, plain_s=plain_s, step_s=plain_s, spent_s=spent_s
            )
            self._save(plain_s)
            return draft
        self._log_odds = self._log_odds_of(batch, draft)
        budget = best_budget(
            self._estimator.confidence(self._log_odds),
            draft.lengths,
            plain_rows=plain_rows,
            sampling=len(batch),
            spent_s=spent_s,
            cost=self.cost,
            in_order=draft.probabilities is not None,
        )
        rows = plain_rows + int(budget.verified.sum())
        step_s = self.cost.step_s(rows)
        self._length.observe(budget, draft.lengths, plain_s=plain_s, step_s=step_s, spent_s=spent_s)
        lengths = self._explored(draft, budget.lengths, rows, step_s)
        return draft if (lengths == draft.lengths).all() else draft.cut(lengths)

    def _explored(
        self, draft: Draft, lengths: NDArray[np.int64], rows: int, step_s: float
    ) -> NDArray[np.int64]:
        """Return `lengths` [B], which make a step of `rows` rows, one of them longer where due."""
        self._save(step_s)
        further_s = self.cost.step_s(rows + 1) - step_s
        if further_s <= self._saved_s and len(shorter := np.flatnonzero(lengths < draft.lengths)):
            self._saved_s -= further_s
            self._explorations += 1
            lengths[shorter[self._explorations % len(shorter)]] += 1
        return lengths

    def _save(self, step_s: float) -> None:
        """Put aside a step's share for exploring; what is not spent stops at a whole step."""
        self._step_s = step_s
        self._saved_s = min(self._saved_s + EXPLORING_SHARE * step_s, step_s)

    def learn(self, batch: Batch[Sequence], draft: Draft, accepted: NDArray[np.int64]) -> None:
        """Learn from what was verified of the draft that was trimmed last, `draft`.

        How much of it was `accepted` is int64 [B].
        """
        if not draft.lengths.any():
            return
        self._estimator = self._estimator.observed(self._log_odds, draft.lengths, accepted)
        if draft.log_odds is None:
            self._records.learn(batch, draft, accepted)

    def _log_odds_of(self, batch: Batch[Sequence], draft: Draft) -> NDArray[np.float64]:
        """Those of the draft, or of the track records, [B, K]."""
        log_odds = np.zeros((len(batch), self._k))
        if draft.log_odds is not None:
            # A table may be wider than K: no draft in it is.
            width = min(draft.tokens.shape[1], self._k)
            log_odds[:, :width] = draft.log_odds[:, :width]
        else:
            log_odds[:] = np.array(self._records.log_odds(batch, draft))[:, None]
        return log_odds
