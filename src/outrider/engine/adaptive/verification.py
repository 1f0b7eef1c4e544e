"""Adaptive verification: each step verifies as much of the drafts as pays."""

from collections.abc import Sequence as Batch

import numpy as np
from numpy.typing import NDArray

from outrider.engine.adaptive.acceptance_estimator import AcceptanceEstimator
from outrider.engine.adaptive.budget import best_budget
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
        self._context_s = 0.0
        self._length = DraftLength(k)
        # Compiles, before there is a request to wait for it.
        unsure, nothing = np.zeros((1, k)), np.zeros(1, np.int64)
        best_budget(
            unsure, nothing, self._estimator, plain_rows=1, sampling=1, spent_s=0.0, cost=cost
        )
        best_plan(
            unsure,
            nothing,
            nothing,
            self._estimator,
            plain_rows=1,
            rate=1.0,
            token_s=0.0,
            cost=cost,
        )

    @property
    def cost(self) -> CostCurve:
        """What steps are thought to cost."""
        return self._costs.curve

    def took(self, batch: Batch[Sequence], rows: int, seconds: float) -> None:
        """Learn that a step of `rows` rows, one of each request and its drafts, took so long.

        Drafting is left out, whatever else depends on the rows is not.
        """
        cached = sum(map(len, batch))
        self._context_s = self._costs.curve.context_s(cached)
        self._costs.observe(rows, seconds, cached_tokens=cached)

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
        curve, token_s = self._costs.curve, self._length.token_s
        made = drafted.tolist()
        planned = best_plan(
            log_odds,
            drafted,
            most,
            self._estimator,
            plain_rows=self._plain_rows,
            rate=self._length.best_rate * len(made) / self._step_s_of(self._plain_rows),
            token_s=token_s,
            cost=curve,
        ).tolist()
        further = [wanted > there for wanted, there in zip(planned, made, strict=True)]
        if token_s <= self._saved_s and not any(further):
            self._saved_s -= token_s
            self._explorations += 1
            able = [row for row, limit in enumerate(most.tolist()) if limit > made[row]]
            further[able[self._explorations % len(able)]] = True
        return np.array(further)

    def trim(
        self, batch: Batch[Sequence], draft: Draft, *, plain_rows: int, spent_s: float
    ) -> Draft:
        """Return the part of `draft`, of the length asked for, to verify.

        The step has `plain_rows` rows without it, and drafting took `spent_s`. Lists where they do:
        between passes caches hold weights alone, and each kind of array operation is a wait.
        """
        curve, drafted = self._costs.curve, draft.lengths.tolist()
        self._context_s = curve.context_s(sum(map(len, batch)))
        plain_s = step_s = self._step_s_of(plain_rows)
        longest = max(drafted)
        promised, verified = list[float](), list[int]()
        if longest:
            self._log_odds = self._log_odds_of(batch, draft)
            budget = best_budget(
                self._log_odds,
                draft.lengths,
                self._estimator,
                plain_rows=plain_rows,
                sampling=len(drafted),
                spent_s=spent_s + self._context_s,
                cost=curve,
                in_order=draft.probabilities is not None,
            )
            promised, verified = budget.promised.tolist(), budget.verified.tolist()
            step_s = self._step_s_of(plain_rows + sum(verified))
        self._length.observe(
            promised,
            verified,
            requests=len(drafted),
            longest=longest,
            plain_s=plain_s,
            step_s=step_s,
            spent_s=spent_s,
            catches_up=any(len(each) == each.prompt_tokens + 1 for each in batch),
        )
        self._save(step_s)
        if not longest:
            return draft
        lengths = budget.lengths.tolist()
        further_s = self._step_s_of(plain_rows + sum(verified) + 1) - step_s
        self._explore(drafted, lengths, further_s)
        return draft if lengths == drafted else draft.cut(np.array(lengths))

    def _step_s_of(self, rows: int) -> float:
        """What a step of so many rows takes with the requests of this step or the last."""
        return self._costs.curve.step_s(rows) + self._context_s

    def _explore(self, drafted: list[int], lengths: list[int], further_s: float) -> None:
        """Make one of the `lengths` [B], at most `drafted` [B], longer where `further_s` is due."""
        if further_s > self._saved_s:
            return
        able = [row for row, length in enumerate(lengths) if length < drafted[row]]
        if able:
            self._saved_s -= further_s
            self._explorations += 1
            lengths[able[self._explorations % len(able)]] += 1

    def _save(self, step_s: float) -> None:
        """Put aside a step's share for exploring; what is not spent stops at a whole step."""
        self._step_s = step_s
        self._saved_s = min(self._saved_s + EXPLORING_SHARE * step_s, step_s)

    def learn(self, batch: Batch[Sequence], draft: Draft, accepted: NDArray[np.int64]) -> None:
        """Learn from what was verified of the draft that was trimmed last, `draft`.

        How much of it was `accepted` is int64 [B].
        """
        if not any(draft.lengths.tolist()):
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
