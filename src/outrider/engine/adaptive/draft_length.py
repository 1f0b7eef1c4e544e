"""How many tokens to draft, by what drafting costs and by what its tokens were worth lately."""

from enum import Enum, auto

from outrider.engine.adaptive.budget import Budget
from outrider.engine.adaptive.draft_cost import DraftCost

MEMORY = 0.97
"""What a step leaves of the weight of those before it: half after 23 steps."""
TRIAL_SHARE = 0.0025
"""The most of the steps' time that trials of each kind lose, or what is never drafted could never
prove itself."""
FIRST_CREDIT_STEPS = 2.0
"""How many plain steps' time the trials of a kind may lose before."""


class Trial(Enum):
    """A draft of another length than seems best; of two that are due the first comes first."""

    FULL = auto()
    """All tokens: where a step of one row more costs much, few may not pay and many may."""
    NEXT = auto()
    """One token more, or the length that loses least where none seems to pay."""


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

    def choose(self, most: int) -> int:
        """Return how many tokens to draft in the step that begins, in which `most` can be used.

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
            best = self._k
        elif self._trial is Trial.NEXT:
            best = best + 1 if best else rates.index(max(rates[1:]), 1)
        self._length = min(best, most)
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
        self, budget: Budget, requests: int, *, plain_s: float, step_s: float, spent_s: float
    ) -> None:
        """Learn from the step that `choose` was asked about, with so many `requests` in it.

        `budget` is what is verified, which makes a step of `plain_s` one of `step_s`; `spent_s` is
        what drafting took.
        """
        if not self._rested:
            self._cost.observe(self._length, spent_s)
        promised = (budget.promised / requests).tolist()
        row_steps = (step_s / plain_s - 1) / max(int(budget.verified.sum()), 1)
        verifying = (row_steps * budget.verified).tolist()
        self._remember(promised, verifying)
        if self._trial is not None:
            tokens, best_rate = 1 + sum(promised), max(self._rates)
            self._credit_steps[self._trial] -= (spent_s + step_s) / plain_s - tokens / best_rate
        self._rates = self._rates_now(plain_s)

    def _remember(self, promised: list[float], verifying: list[float]) -> None:
        """Take a step's figures [K] into the averages: of all of the first few, then the last."""
        for place in range(self._length):
            self._seen[place] += 1
            weight = max(1 - MEMORY, 1 / self._seen[place])
            self._promised[place] += weight * (promised[place] - self._promised[place])
            self._verifying[place] += weight * (verifying[place] - self._verifying[place])
