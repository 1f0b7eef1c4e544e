"""How many tokens to draft, by what drafting costs and by what its tokens were worth lately."""

from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.engine.adaptive.budget import Budget
from outrider.engine.adaptive.draft_cost import DraftCost
from outrider.engine.compiling import compiled

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


class Known(NamedTuple):
    """Of each position [k], over the steps in which it was drafted, of which there were `seen`.

    What its tokens `promised` to one request, the plain steps' time that `verifying` them took, and
    how often there were any: `passes`, since a draft may stop short of the length asked for.
    """

    promised: NDArray[np.float64]
    verifying: NDArray[np.float64]
    passes: NDArray[np.float64]
    seen: NDArray[np.int64]


class DraftLength:
    """Chooses the draft length of the next step, 0 to `k`.

    Of each position it keeps what its tokens promised and what it cost to verify them in the last
    steps. With what drafting costs this gives the rate of tokens at every length, and the best is
    taken. Where that is not `k`, longer drafts are tried, of either kind whenever `TRIAL_SHARE` of
    all steps has made good what such trials have lost. A trial begins with two steps if there was
    no draft before it: a model that has paused reads what it missed first, and only the second step
    tells what drafting costs.
    """

    def __init__(self, k: int) -> None:
        self._k = k
        self._known = Known(np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(k, np.int64))
        self._cost = DraftCost()
        self._rates = [0.0] * k + [1.0]  # the longest, until something is known
        self._credit_steps = dict.fromkeys(Trial, FIRST_CREDIT_STEPS)
        self._length = 0
        self._rested = True
        self._trial: Trial | None = None
        # Compiles, before there is a request to wait for it.
        _learn(self._known, (0, 0), Budget.nothing(1, k), (1, 1.0), (0.0, 0.0), np.empty(k + 1))

    @property
    def best_rate(self) -> float:
        """Tokens of one request in the time of a plain step, at the length that seems best."""
        return max(self._rates)

    @property
    def token_s(self) -> float:
        """What it takes to draft one token more."""
        return max(self._cost.token_s, 0.0)

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

    def observe(
        self,
        budget: Budget,
        drafted: NDArray[np.int64],
        *,
        plain_s: float,
        step_s: float,
        spent_s: float,
    ) -> None:
        """Learn from the step that `choose` was asked about, with `drafted` [B] tokens in it.

        `budget` is what is verified, which makes a step of `plain_s` one of `step_s`; `spent_s` is
        what drafting took.
        """
        requests, longest = len(drafted), int(drafted.max())
        if not self._rested:
            self._cost.observe(max(longest, 1), spent_s)
        if self._trial is not None:
            tokens = 1 + float(budget.promised.sum()) / requests
            lost_steps = (spent_s + step_s) / plain_s - tokens / self.best_rate
            self._credit_steps[self._trial] -= lost_steps
        rates = np.empty(self._k + 1)
        step = (requests, step_s / plain_s)
        cost_steps = (self._cost.seconds(0) / plain_s, self._cost.seconds(1) / plain_s)
        _learn(self._known, (self._length, longest), budget, step, cost_steps, rates)
        self._rates = rates.tolist()


@compiled()
def _learn(
    known: Known, lengths: Any, budget: Any, step: Any, cost_steps: Any, rates: NDArray[np.float64]
) -> None:
    """Take a step's figures into the averages: of all of the first few, then the last.

    `rates` [k + 1] become the tokens of one request in the time of a plain step at each draft
    length. `lengths` are what was asked for and the longest that there was. The `step` had so many
    requests and took so many plain steps' time; a draft of none and of one token takes `cost_steps`
    of them.
    """
    asked, longest = lengths
    requests, taken_steps = step
    row_steps = (taken_steps - 1) / max(budget.verified.sum(), 1)
    for j in range(asked):
        known.seen[j] += 1
        weight = max(1 - MEMORY, 1 / known.seen[j])
        known.promised[j] += weight * (budget.promised[j] / requests - known.promised[j])
        known.verifying[j] += weight * (row_steps * budget.verified[j] - known.verifying[j])
        known.passes[j] += weight * ((1.0 if j < longest else 0.0) - known.passes[j])
    fixed, token = cost_steps[0], cost_steps[1] - cost_steps[0]
    tokens = rates[0] = 1.0
    steps = 1.0 + fixed
    for j in range(len(known.seen)):
        tokens += known.promised[j]
        steps += known.verifying[j] + token * known.passes[j]
        rates[j + 1] = tokens / steps
