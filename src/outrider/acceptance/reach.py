"""How far into a draft the steps of a segment reach, from its sums."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from outrider.acceptance.columns import Columns
from outrider.acceptance.intervals import FloatArray
from outrider.acceptance.totals import Totals

SurvivalEstimator = Literal["product_limit", "tail"]


@dataclass(frozen=True, slots=True)
class Reach:
    """Steps by draft position [..., positions], for any number of sums at once.

    Of the `at_risk` steps, which accepted everything before a position and (by product limit)
    drafted a token there, `passed` accepted it.
    """

    at_risk: FloatArray
    passed: FloatArray

    @property
    def conditional(self) -> FloatArray:
        """c_r, passed over at risk; nan where no step was at risk."""
        with np.errstate(divide="ignore", invalid="ignore"):
            shares: FloatArray = self.passed / self.at_risk
        return shares

    @property
    def survival(self) -> FloatArray:
        """s_r = c_1 * ... * c_r: 0 once a factor is 0, nan from the first that is unknown."""
        survived = self.conditional
        for position in range(1, survived.shape[-1]):
            before = survived[..., position - 1]
            # Once nothing survives, no later factor, known or not, can bring it back.
            survived[..., position] = np.where(before == 0, 0, before * survived[..., position])
        return survived


def estimator_of(totals: Totals) -> SurvivalEstimator:
    """Return "product_limit" where the draft length of every single step is known."""
    steps = totals.count("steps")
    known = totals.columns.k > 0 and 0 < steps == totals.count("length_known_steps")
    return "product_limit" if known else "tail"


def histogram_of(totals: Totals) -> tuple[int, ...] | None:
    """Return (H_0 ... H_K), up to the last entry in use where K is unknown.

    None where the histogram of any step is unknown, as a part of the steps may be of one kind.
    """
    counts = totals.counts("histogram")
    untold = totals.count("histogram_unknown") == totals.count("records")
    if untold or sum(counts) != totals.count("steps"):
        return None
    if totals.columns.k:
        return counts
    used = max((length for length, steps in enumerate(counts) if steps), default=0)
    return counts[: used + 1]


def position_count(totals: Totals) -> int:
    """Return how many draft positions the sums speak about; 0 where nothing tells positions."""
    if estimator_of(totals) == "product_limit":
        return totals.columns.k
    histogram = histogram_of(totals)
    return len(histogram) - 1 if histogram else 0


def reach_of(
    sums: FloatArray, columns: Columns, estimator: SurvivalEstimator, positions: int
) -> Reach:
    """Return the reach at positions 1 ... `positions` of sums [..., columns]."""
    if estimator == "product_limit":
        return Reach(sums[..., columns.slice("at_risk")], sums[..., columns.slice("passed")])
    tails = steps_that_reached(sums, columns)
    return Reach(tails[..., :positions], tails[..., 1 : positions + 1])


def steps_that_reached(sums: FloatArray, columns: Columns) -> FloatArray:
    """Return the steps that accepted at least 0, 1, ..., K tokens, [..., K + 1]."""
    histogram = sums[..., columns.slice("histogram")]
    return np.cumsum(histogram[..., ::-1], axis=-1)[..., ::-1]
