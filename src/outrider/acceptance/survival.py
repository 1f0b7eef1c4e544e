"""How far into a draft acceptance reaches, position by position."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np

from outrider.acceptance.histogram import AcceptanceHistogram
from outrider.acceptance.lengths import Lengths, checked_lengths
from outrider.acceptance.ratio import ratio


def survival(histogram: AcceptanceHistogram) -> tuple[Fraction, ...] | None:
    """Return the naive tail ratios s_1 ... s_K, the share of all steps that accepted r or more.

    Where drafts were shorter than K this understates what a full draft would reach, as a step
    then counts as a failure at positions it was never offered. None when there are no steps.

    >>> survival(AcceptanceHistogram((39, 1, 0, 3), drafted=129))
    (Fraction(4, 43), Fraction(3, 43), Fraction(3, 43))
    """
    steps, *reached = _steps_that_reached(histogram)
    return tuple(Fraction(n, steps) for n in reached) if steps else None


def conditional_survival(histogram: AcceptanceHistogram) -> tuple[Fraction | None, ...]:
    """Return c_1 ... c_K, c_r = s_r / s_(r-1) with s_0 = 1; None where no step reached r - 1.

    >>> conditional_survival(AcceptanceHistogram((39, 1, 0, 3), drafted=129))
    (Fraction(4, 43), Fraction(3, 4), Fraction(1, 1))
    """
    return tuple(ratio(here, before) for before, here in pairwise(_steps_that_reached(histogram)))


def _steps_that_reached(histogram: AcceptanceHistogram) -> tuple[int, ...]:
    """Return the steps that accepted at least 0, 1, ..., K tokens."""
    return tuple(accumulate(reversed(histogram.counts)))[::-1]


@dataclass(frozen=True, slots=True)
class PositionSurvival:
    """The product-limit estimate at one draft position, counted from 1.

    `at_risk` steps had accepted everything before `position` and drafted a token there;
    `accepted` of them accepted it. `conditional` is c_r = accepted / at_risk, `survival` is
    s_r = c_1 * ... * c_r (0 once a factor is 0, known or not beyond), and None means that no
    step says.
    """

    position: int
    at_risk: int
    accepted: int
    conditional: Fraction | None
    survival: Fraction | None


def product_limit_survival(
    accepted: Lengths, drafted: Lengths, k: int
) -> tuple[PositionSurvival, ...]:
    """Return the survival of positions 1 ... K when draft lengths vary.

    A step that accepted all it drafted says nothing about the next position (it is
    right-censored), so c_r = #(a >= r) / #(a >= r-1 and d >= r). This assumes that the length
    of a draft does not foretell its acceptance; a drafter that shortens the drafts it doubts
    makes the later positions look better than a fixed length would. One accepted and one
    drafted length per verification step; raises ValueError as `AcceptanceHistogram.from_steps`.

    Source: Kaplan and Meier, "Nonparametric Estimation from Incomplete Observations",
    Journal of the American Statistical Association 53 (1958), 457-481.
    """
    return tuple(_product_limit(accepted, drafted, k))


def _product_limit(accepted: Lengths, drafted: Lengths, k: int) -> Iterator[PositionSurvival]:
    a, d = checked_lengths(accepted, drafted, k)
    survived: Fraction | None = Fraction(1)
    for position in range(1, k + 1):
        at_risk = int(np.count_nonzero((a >= position - 1) & (d >= position)))
        passed = int(np.count_nonzero(a >= position))
        conditional = ratio(passed, at_risk)
        # Once nothing survives, no later factor, known or not, can bring it back.
        if survived:
            survived = None if conditional is None else survived * conditional
        yield PositionSurvival(position, at_risk, passed, conditional, survived)
