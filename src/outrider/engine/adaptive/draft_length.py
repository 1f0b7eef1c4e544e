"""How many tokens to draft, by what drafting costs and by what its tokens were worth lately."""

from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.draft_cost import DraftCost

MEMORY = 0.97
"""What a step leaves of the weight of those before it: half after 23 steps."""
TRIAL_SHARE = 0.0025
"""The most of the steps' time that trials of each kind lose, or what is never drafted could never
prove itself."""
FIRST_CREDIT_STEPS = 4.0
"""How many plain steps' time the trials of a kind may lose before."""


class Trial(Enum):
    """A draft of another length than seems best."""

    NEXT = auto()
    """One token more, or the length that loses least where none seems to pay."""
    FULL = auto()
    """All tokens: where a step of one row more costs much, few may not pay and many may."""


class DraftLength:
    """Chooses the draft length of the next step, 0 to `k`.

    Of each position it keeps what its tokens promised and what it cost to verify them in the last
    steps, for one request and in plain steps. With what drafting costs this gives the rate of
    tokens at every length, and the best is taken. Where that is not `k`, longer drafts are tried,
    of either kind whenever `TRIAL_SHARE` of all steps has made good what such trials have lost. A
    trial begins with two steps if there was no draft before it: a model that has paused reads what
    it missed first, and only the second step tells what drafting costs.
    """

    def __init__(self, k: int) -> None:
        self._k = k
        self._promised = [0.0] * k
        self._verifying = [0.0] * k
        self._seen = [0] * k
        self._cost = DraftCost()
        self._rates = [1.0] * k + [2.0]  # the longest, until something is known
        self._credit_steps = dict.fromkeys(Trial, FIRST_CREDIT_STEPS)
        self._length = 0
        self._rested = True
        self._trial: Trial | None = None

    def choose(self) -> int:
        """Return how many tokens to draft in the step that begins.

        It depends on the steps before alone, so it cannot change what is drawn in this one.
        """
        for kind, credit in self._credit_steps.items():
            self._credit_steps[kind] = min(credit + TRIAL_SHARE, FIRST_CREDIT_STEPS)
        begun = self._trial if self._rested else None
        self._rested = self._length == 0
        rates = self._rates
        best = rates.index(max(rates))
        due = (kind for kind, credit in self._credit_steps.items() if credit > 0)
        self._trial = None if best == self._k else begun or next(due, None)
        if self._trial is Trial.FULL:
            self._length = self._k
        elif self._trial is Trial.NEXT:
            self._length = best + 1 if best else rates.index(max(rates[1:]), 1)
        else:
            self._length = best
        return self._length

    def _rates_now(self, plain_s: float) -> list[float]:
        """Tokens of one request in the time `plain_s` of a plain step, at draft lengths 0 to k."""
        tokens = steps = 1.0
        rates = [1.0]
        for place, (promised, verifying) in enumerate(
            zip(self._promised, self._verifying, strict=True), start=1
        ):
            tokens += promised
            steps += verifying
            rates.append(tokens / (steps + self._cost.seconds(place) / plain_s))
        return rates

    def observe(
        self,
        survival: NDArray[np.float64],
        lengths: NDArray[np.int64],
        *,
        plain_rows: int,
        spent_s: float,
        cost: CostCurve,
    ) -> None:
        """Learn from the step that `choose` was asked about.

        `survival` [B, <= K] is the chance of each drafted token, of which the first `lengths` [B]
        of each request are verified; `spent_s` is what drafting took, and `plain_rows` the rows
        without any draft.
        """
        count = int(lengths.sum())
        plain_s, step_s = cost.step_s(plain_rows), cost.step_s(plain_rows + count)
        if not self._rested:
            self._cost.observe(self._length, spent_s)
        tokens = 1.0
        if count:
            verified = np.arange(survival.shape[1]) < lengths[:, None]
            promised = (np.where(verified, survival, 0.0).sum(axis=0) / len(lengths)).tolist()
            tokens += sum(promised)
            row_steps = (step_s - plain_s) / plain_s / count
            verifying = (row_steps * verified.sum(axis=0)).tolist()
        else:
            promised = verifying = []
        self._remember(promised, verifying)
        if self._trial is not None:
            best_rate = max(self._rates)
            self._credit_steps[self._trial] -= (spent_s + step_s) / plain_s - tokens / best_rate
        self._rates = self._rates_now(plain_s)

    def _remember(self, promised: list[float], verifying: list[float]) -> None:
        """Take a step's figures into the averages: those of the first few, then the last ones'."""
        for place in range(self._length):
            self._seen[place] += 1
            weight = max(1 - MEMORY, 1 / self._seen[place])
            new = (promised[place], verifying[place]) if place < len(promised) else (0.0, 0.0)
            self._promised[place] += weight * (new[0] - self._promised[place])
            self._verifying[place] += weight * (new[1] - self._verifying[place])
