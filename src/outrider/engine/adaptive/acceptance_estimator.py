"""The chance that a drafted token is accepted, learned while serving.

For drafters that give no confidence of their own. With f the log-odds that the drafter gave to
its likeliest token, position k is accepted, given that all before it were, with probability

    c_k = sigmoid(w f + b_k)

one slope w for all positions and one intercept b_k for each. Both follow logistic regression by
Newton's method: once in a while a refit solves the sums of gradient and curvature of all steps
since the last. Values are those of vLLM's estimator (0.33.0), but for
`REFIT_OBSERVATIONS`.
"""

from dataclasses import dataclass
from math import exp
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from outrider.engine.compiling import compiled

FIRST_SLOPE = 0.5
FIRST_INTERCEPT = -0.2
REFIT_STEPS = 100
REFIT_OBSERVATIONS = 200
"""So many, twice as many the next time and so on, bring a refit sooner: a large batch sees in a few
steps what a single request does in 100, and the later it is the finer the fit should be."""
RIDGE = 1e-3
"""Added to every diagonal entry of the curvature, so that an unseen position has a solution."""
HALF_TRUST_OBSERVATIONS = 50
"""n observations move a parameter by n / (n + this) of the solution's step."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """What the observations since the last refit add up to, for K positions.

    Gradients of the log-likelihood and the entries of its curvature, which has the shape of an
    arrow: `slope_curvature` at its tip, `cross_curvature` [K] along its edges and
    `intercept_curvature` [K] on its diagonal. `observations` is float64 [K].
    """

    slope_gradient: float
    intercept_gradient: NDArray[np.float64]
    slope_curvature: float
    cross_curvature: NDArray[np.float64]
    intercept_curvature: NDArray[np.float64]
    observations: NDArray[np.float64]

    @classmethod
    def zero(cls, k: int) -> Self:
        """Nothing observed at any of `k` positions."""
        nothing = np.zeros(k)
        return cls(0.0, nothing, 0.0, nothing, nothing, nothing)


class Observation(NamedTuple):
    """One step: log-odds [B, K], and of `verified` [B] drafted tokens how many were `accepted`."""

    log_odds: NDArray[np.float64]
    verified: NDArray[np.int64]
    accepted: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class AcceptanceEstimator:
    """The estimate after some steps; `observed` returns the next one.

    `slope` is w, `intercepts` float64 [K] are b. Steps since the last of so many `refits` wait in
    `pending`, with at most `pending_tokens` that say something: parameters stay as they are until
    then, so their sums can as well be made at once.
    """

    slope: float
    intercepts: NDArray[np.float64]
    pending: tuple[Observation, ...] = ()
    pending_tokens: int = 0
    refits: int = 0

    @classmethod
    def start(cls, k: int) -> Self:
        """Begin with the same guess for each of `k` positions."""
        return cls(FIRST_SLOPE, np.full(k, FIRST_INTERCEPT))

    def confidence(self, log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return c for `log_odds` [B, <= K]; NaN where they are."""
        c: NDArray[np.float64] = expit(self.slope * log_odds + self.intercepts[: log_odds.shape[1]])
        return c

    def observed(
        self,
        log_odds: NDArray[np.float64],
        verified: NDArray[np.int64],
        accepted: NDArray[np.int64],
    ) -> Self:
        """Learn from one step: of `verified` [B] drafted tokens, `accepted` [B] were.

        `log_odds` is [B, K], and none of the three may change any more. The accepted positions and
        the first rejected one say something; later ones, those not verified and those whose
        log-odds are NaN say nothing. After `REFIT_STEPS` steps or `REFIT_OBSERVATIONS` the
        parameters are fitted to what was seen.
        """
        learned = type(self)(
            self.slope,
            self.intercepts,
            (*self.pending, Observation(log_odds, verified, accepted)),
            self.pending_tokens
            + sum(
                min(right + 1, looked_at)
                for right, looked_at in zip(accepted.tolist(), verified.tolist(), strict=True)
            ),
            self.refits,
        )
        enough = learned.pending_tokens >= REFIT_OBSERVATIONS * (self.refits + 1)
        return learned.refitted() if enough or len(learned.pending) >= REFIT_STEPS else learned

    @property
    def sums(self) -> Sums:
        """What the steps that wait add up to."""
        if not self.pending:
            return Sums.zero(len(self.intercepts))
        steps = zip(*self.pending, strict=True)
        log_odds, verified, accepted = (np.concatenate(each) for each in steps)
        position = np.arange(len(self.intercepts))
        seen = (position <= accepted[:, None]) & (position < verified[:, None])
        seen &= ~np.isnan(log_odds)
        f = np.where(seen, log_odds, 0.0)
        c = self.confidence(f)
        error = np.where(seen, (position < accepted[:, None]) - c, 0.0)
        curvature = np.where(seen, c * (1 - c), 0.0)
        return Sums(
            float((error * f).sum()),
            error.sum(axis=0),
            float((curvature * f * f).sum()),
            (curvature * f).sum(axis=0),
            curvature.sum(axis=0),
            seen.sum(axis=0).astype(np.float64),
        )

    def refitted(self) -> Self:
        """Take one damped Newton step on the sums of the steps that wait.

        A slope below 0, by which a surer drafter would be accepted less, is not believed: nothing
        changes then.
        """
        sums = self.sums
        slope_step, intercept_step = newton_step(sums)
        total = float(sums.observations.sum())
        slope = self.slope + slope_step * total / (total + HALF_TRUST_OBSERVATIONS)
        trust = sums.observations / (sums.observations + HALF_TRUST_OBSERVATIONS)
        intercepts = self.intercepts + intercept_step * trust
        if slope < 0 or not np.isfinite([slope, *intercepts]).all():
            slope, intercepts = self.slope, self.intercepts
        return type(self)(slope, intercepts, refits=self.refits + 1)


@compiled(within=True)
def expected_confidence(log_odds: Any, slope: float, intercepts: Any) -> Any:
    """c [B, K] of drafts of j tokens, of `log_odds` [B, j], and of what may follow them.

    A token that is not drafted yet is expected to be as sure as the last one that is.
    """
    batch, known = log_odds.shape
    c = np.empty((batch, len(intercepts)))
    for b in range(batch):
        for j in range(len(intercepts)):
            f = log_odds[b, min(j, known - 1)]
            c[b, j] = 1 / (1 + exp(-(slope * f + intercepts[j])))
    return c


def newton_step(sums: Sums) -> tuple[float, NDArray[np.float64]]:
    """Solve curvature x step = gradient for the slope and the intercepts [K].

    Eliminating the intercepts, whose block is diagonal, leaves one equation for the slope.
    """
    diagonal = sums.intercept_curvature + RIDGE
    cross = sums.cross_curvature
    tip = sums.slope_curvature + RIDGE - float((cross * cross / diagonal).sum())
    rest = sums.slope_gradient - float((cross * sums.intercept_gradient / diagonal).sum())
    slope = rest / tip
    return slope, (sums.intercept_gradient - cross * slope) / diagonal
