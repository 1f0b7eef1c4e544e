"""How many tokens to draft, by what drafting costs and by what its tokens were worth lately."""

from dataclasses import dataclass
from enum import Enum, auto

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


@dataclass(slots=True)
class Position:
    """What is known of one position, over the steps in which it was drafted, `seen` of them.

    What its tokens `promised` to one request, the plain steps' time that `verifying` them took, and
    how often there were any: `passes`, since a draft may stop short of the length asked for.
    """

    promised: float = 0.0
    verifying: float = 0.0
    passes: float = 0.0
    seen: int = 0

    def observe(self, promised: float, verifying: float, passes: float) -> None:
        """Take a step's figures into the averages: of all of the first few, then the last."""
        self.seen += 1
        weight = max(1 - MEMORY, 1 / self.seen)
        self.promised += weight * (promised - self.promised)
        self.verifying += weight * (verifying - self.verifying)
        self.passes += weight * (passes - self.passes)


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
        self._positions = [Position() for _ in range(k)]
        self._cost = DraftCost()
        self._rates = [0.0] * k + [1.0]  # the longest, until something is known
        self._credit_steps = dict.fromkeys(Trial, FIRST_CREDIT_STEPS)
        self._length = 0
        self._rested = True
        self._trial: Trial | None = None

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
        promised: list[float],
        verified: list[int],
        *,
        requests: int,
        longest: int,
        plain_s: float,
        step_s: float,
        spent_s: float,
        catches_up: bool,
    ) -> None:
        """Learn from the step that `choose` was asked about, of so many `requests`.

        The `longest` draft had so many tokens. At each position so many are `verified`, which
        `promised` this together; they make a step of `plain_s` one of `step_s`. `spent_s` is what
        drafting took. Where a draft model `catches_up` with a request that is new to it, it has
        read a prompt, which is no draft's fault: it counts as no more than was thought before.
        """
        known_s = self._cost.seconds(max(longest, 1))
        if catches_up and 0 < known_s < spent_s:
            spent_s = known_s
        elif not self._rested:
            self._cost.observe(max(longest, 1), spent_s)
        if self._trial is not None:
            tokens = 1 + sum(promised) / requests
            lost_steps = (spent_s + step_s) / plain_s - tokens / self.best_rate
            self._credit_steps[self._trial] -= lost_steps
        row_steps = (step_s / plain_s - 1) / max(sum(verified), 1)
        for j, position in enumerate(self._positions[: self._length]):
            if j < len(promised):
                position.observe(
                    promised[j] / requests, row_steps * verified[j], float(j < longest)
                )
            else:
                position.observe(0.0, 0.0, 0.0)
        fixed, one = self._cost.seconds(0) / plain_s, self._cost.seconds(1) / plain_s
        tokens, steps = 1.0, 1.0 + fixed
        self._rates = [1.0]
        for position in self._positions:
            tokens += position.promised
            steps += position.verifying + (one - fixed) * position.passes
            self._rates.append(tokens / steps)
