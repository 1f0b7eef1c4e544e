"""Between which limits the mean acceptance length of a window of so many steps is to lie."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Literal, Protocol

import numpy as np
from scipy.special import ndtr, stdtrit

from outrider.acceptance.intervals import Interval

Side = Literal["low", "high"]

SIGMAS = 3.0
"""Of normal figures, 1 in 370 lies as far from its mean."""
MOVING_RANGE_OF_ONE_SIGMA = 1.128
"""The mean difference of two normal figures in a row, 2 / sqrt(pi)."""
FEWEST_WINDOWS = 5
LEAST_M = 1.0
"""Every step emits the bonus token."""
LEAST_NOTICED = 0.75
"""The loss of this share of the accepted tokens is one that a band is to notice."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The ends of a band; None: nothing is too low, or too high, for it."""

    low: float | None
    high: float | None

    def side(self, m: float) -> Side | None:
        """Return the side on which M lies outside, None for inside.

        >>> Limits(1.3, None).side(1.2), Limits(1.3, None).side(5.0)
        ('low', None)
        """
        if self.low is not None and m < self.low:
            return "low"
        return "high" if self.high is not None and m > self.high else None


class Band(Protocol):
    """What M should be, for windows of any size.

    `fewest_steps` are those that a window needs for a low limit that a broken drafter passes.
    """

    @property
    def fewest_steps(self) -> int:
        """At least 1; 1 as well where no number of steps would do."""

    def limits(self, steps: int) -> Limits:
        """Return the limits of a window of that many verification steps, at least 1."""


@dataclass(frozen=True, slots=True)
class FixedBand:
    """Limits that somebody set, whatever the number of steps."""

    fixed: Limits

    @property
    def fewest_steps(self) -> int:
        """Any number will do."""
        return 1

    def limits(self, steps: int) -> Limits:  # noqa: ARG002  the protocol's
        """Return the limits that were set."""
        return self.fixed


@dataclass(frozen=True, slots=True)
class ChartBand:
    """Limits about `centre`, which is M over `steps` steps, that tighten with a window's steps.

    `spread` is the standard deviation of M in a window of one step, as it would be if that of n
    steps were smaller by sqrt(n): the correlation of steps within an answer is in it. `factor` is
    how many standard errors a limit is away. `dispersion` is the spread over that of independent
    steps, None where their variance is unknown. No limit is given that no M can pass: below 1, or
    above `top` = K + 1 where K is known.
    """

    centre: float
    spread: float
    steps: int
    factor: float
    dispersion: float | None = None
    top: float | None = None

    @property
    def fewest_steps(self) -> int:
        """Return the steps whose low limit is where three quarters of A are lost, or higher."""
        error = self.factor * self.spread
        if not error:
            return 1
        known = (LEAST_NOTICED * (self.centre - LEAST_M) / error) ** 2 - 1 / self.steps
        return ceil(1 / known) if known > 0 else 1

    def limits(self, steps: int) -> Limits:
        """Return centre ± factor * spread * sqrt(1 / steps + 1 / the centre's own steps)."""
        away = self.factor * self.spread * sqrt(1 / steps + 1 / self.steps)
        low, high = self.centre - away, self.centre + away
        return Limits(
            low if low > LEAST_M else None,
            high if self.top is None or high < self.top else None,
        )


def learned_band(
    steps: Sequence[int],
    accepted: Sequence[int],
    *,
    step_variance: float | None = None,
    k: int | None = None,
) -> ChartBand:
    """Learn a band from windows in their order: their numbers of steps and of accepted tokens.

    Laney's u' chart: the z scores z_i = (A_i/S_i - A/S) / sqrt(v / S_i) of the windows vary by more
    than 1 where steps are not independent, and sigma_z is their mean moving range / 1.128. The
    limits are M ± 3 * sigma_z * sqrt(v / S_w). `step_variance`, the v of the accepted length of a
    single step, cancels out and is needed only to tell the dispersion sigma_z, which is never taken
    to be below 1: steps of an answer do not repel each other.

    Few windows do not know sigma_z well, so 3 is widened to the quantile of Student's t that has
    the same tail, with the degrees of freedom of a mean moving range; without it 20 windows would
    give four times the false alarms. Raises ValueError for fewer than 5 windows or one without
    steps.

    Sources: Laney, "Improved Control Charts for Attributes", Quality Engineering 14 (2002),
    531-537; Cryer and Ryan, "The Estimation of Sigma for an X Chart: MR/d2 or S/c4?", Journal of
    Quality Technology 22 (1990), 187-192.
    """
    s, a = np.asarray(steps, dtype=np.float64), np.asarray(accepted, dtype=np.float64)
    if len(s) < FEWEST_WINDOWS or s.min() < 1:
        raise ValueError(f"{len(s)} windows; expected at least {FEWEST_WINDOWS}, each with steps")
    total = float(s.sum())
    mean = float(a.sum()) / total
    scaled = (a / s - mean) * np.sqrt(s)
    spread = float(np.abs(np.diff(scaled)).mean()) / MOVING_RANGE_OF_ONE_SIGMA
    dispersion = None
    if step_variance is not None:
        # Where no step differed from another, one that does would not be a surprise.
        independent = sqrt(max(step_variance, 1 / total))
        spread = max(spread, independent)
        dispersion = spread / independent
    return ChartBand(
        centre=LEAST_M + mean,
        spread=spread,
        steps=int(total),
        factor=_factor(_freedom(len(s))),
        dispersion=dispersion,
        top=None if k is None else k + 1.0,
    )


def band_of_interval(
    m: float, interval: Interval, *, steps: int, k: int | None = None
) -> ChartBand:
    """Return the band about an M whose `interval` resampled the answers of so many steps.

    The interval tells how much M varies over those steps, the correlation within answers included,
    and so how much it does over a window's: more by sqrt(steps / the window's).
    """
    freedom = interval.clusters - 1
    error = (interval.high - interval.low) / 2 / -stdtrit(freedom, (1 - interval.level) / 2)
    return ChartBand(
        centre=m,
        spread=float(error) * sqrt(steps),
        steps=steps,
        factor=_factor(freedom),
        top=None if k is None else k + 1.0,
    )


def _freedom(windows: int) -> float:
    """Return the degrees of freedom whose s is as uncertain as a mean moving range / 1.128."""
    variance = (0.8264 * windows - 1.082) / (windows - 1) ** 2
    return 1 / (2 * variance)


def _factor(freedom: float) -> float:
    """Return the quantile of Student's t with as small a tail as 3 has among normal figures."""
    return -float(stdtrit(freedom, ndtr(-SIGMAS)))
