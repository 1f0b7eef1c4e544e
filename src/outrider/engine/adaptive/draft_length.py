"""How many tokens to draft, by what drafting costs and by what its tokens were worth lately."""

import numpy as np
from numpy.typing import NDArray

from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.draft_cost import DraftCost

MEMORY = 0.9
"""What a step leaves of the weight of those before it: half after 7 steps."""
TRIAL_SHARE = 0.005
"""The most of the steps' time that is lost by drafts which do not seem to pay, or what is never
drafted could never prove itself."""
FIRST_CREDIT_STEPS = 8.0
"""How many plain steps' time drafts may lose before they have to pay."""


class DraftLength:
    """Chooses the draft length of the next step, 0 to `k`.

    Of each position it keeps what its tokens promised and what it cost to verify them in the last
    steps, for one request and in plain steps. With what drafting costs this gives the rate of
    tokens at every length, and the best is taken. Where that is not `k`, a full draft is tried
    whenever `TRIAL_SHARE` of all steps has made good what such trials have lost. A trial begins
    with two steps if there was no draft before it: a model that has paused reads what it missed
    first, and only the second step tells what drafting costs.
    """

    def __init__(self, k: int) -> None:
        self._k = k
        self._promised = [0.0] * k
        self._verifying = [0.0] * k
        self._seen = [0] * k
        self._cost = DraftCost()
        self._plain_s = 0.0
        self._credit_steps = FIRST_CREDIT_STEPS
        self._length = 0
        self._rested = True
        self._trial = False

    def choose(self) -> int:
        """Return how many tokens to draft in the step that begins.

        It depends on the steps before alone, so it cannot change what is drawn in this one.
        """
        self._credit_steps = min(self._credit_steps + TRIAL_SHARE, FIRST_CREDIT_STEPS)
        begun = self._trial and self._rested
        self._rested = self._length == 0
        rates = self._rates()
        best = rates.index(max(rates)) if self._plain_s else self._k
        self._trial = best < self._k and (begun or self._credit_steps > 0)
        self._length = self._k if self._trial else best
        return self._length

    def _rates(self) -> list[float]:
        """Tokens of one request in the time of a plain step, at draft lengths 0 to k."""
        tokens = steps = 1.0
        rates = [1.0]
        for place, (promised, verifying) in enumerate(
            zip(self._promised, self._verifying, strict=True), start=1
        ):
            tokens += promised
            steps += verifying
            rates.append(tokens / (steps + self._cost.seconds(place) / max(self._plain_s, 1e-9)))
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
        plain_s, step_s = cost.cost_s(np.array([plain_rows, plain_rows + count])).tolist()
        best_rate = max(self._rates()) if self._plain_s else 1.0
        self._plain_s = plain_s
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
        if self._trial:
            self._credit_steps -= (spent_s + step_s) / plain_s - tokens / best_rate

    def _remember(self, promised: list[float], verifying: list[float]) -> None:
        """Take a step's figures into the averages: those of the first few, then the last ones'."""
        for place in range(self._length):
            self._seen[place] += 1
            weight = max(1 - MEMORY, 1 / self._seen[place])
            new = (promised[place], verifying[place]) if place < len(promised) else (0.0, 0.0)
            self._promised[place] += weight * (new[0] - self._promised[place])
            self._verifying[place] += weight * (new[1] - self._verifying[place])
