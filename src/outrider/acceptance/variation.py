"""Which key explains most of the variation of M between records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc

from outrider.acceptance.intervals import FloatArray
from outrider.acceptance.totals import Totals

FEWEST_RECORDS = 5
"""A group of fewer records with steps says too little of its own variation to be tested."""
LEAST_EXPLAINED = 0.1
SIGNIFICANCE = 0.01
"""Of all keys together."""
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Variation:
    """How much of the variation of M between `records` lies between their `groups`.

    `explained` is the share, 0 to 1, adjusted for what chance alone puts between groups, None
    without any variation; `f` and `p_value` are of the test that all groups have one M. All three
    are None with fewer than two groups. `records` counts those with steps, without the
    `left_out_records` of groups that have fewer than 5.
    """

    explained: float | None
    f: float | None
    p_value: float | None
    groups: int
    records: int
    left_out_groups: int
    left_out_records: int

    @property
    def covers_most(self) -> bool:
        """Whether at least half of all records with steps are in groups that were tested."""
        return self.records >= self.left_out_records


@dataclass(frozen=True, slots=True)
class KeyChoice:
    """The `key` that explains most, None where none explains enough, and how every key fared."""

    key: str | None
    tried: Mapping[str, Variation]


@dataclass(frozen=True, slots=True)
class _Groups:
    """Per group [g], of groups with steps: R, its share of all steps, and how well R is known.

    `size` is the number of records of equal length that would know R as well, S^2 / sum of S_i^2,
    and `variance` that of R, size/(size - 1) * sum of (A_i - R * S_i)^2 / S^2.
    """

    ratio: FloatArray
    weight: FloatArray
    size: FloatArray
    variance: FloatArray

    @property
    def between(self) -> float:
        """The variance of R between groups, by step."""
        return float(self.weight @ (self.ratio - self.weight @ self.ratio) ** 2)

    @property
    def noise(self) -> FloatArray:
        """What each group's variance adds to `between` where all have one R."""
        return self.weight * (1 - self.weight) * self.variance

    @property
    def within(self) -> float:
        """The variance of R between records of one group."""
        return float(self.weight @ (self.size * self.variance))


def explained_variation(groups: Sequence[Totals]) -> Variation:
    """Return how much of the variation of M between records lies between groups of them.

    The sums of A^2, A * S and S^2 over records suffice. M is 1 + R with R = A/S, pooled over the
    steps of a group; a record varies about it by A - R * S. Long answers vary more in A than short
    ones and may lie in one group, so the plain F test would find differences where there are none:
    here each group brings its own variance, its degrees of freedom are those of as many records of
    equal length, and `explained` compares the variance of R between groups, less what chance adds
    to it, with that between records of one group.

    Sources: Brown and Forsythe, "The Small Sample Behavior of Some Statistics Which Test the
    Equality of Several Means", Technometrics 16 (1974), 129-132; Mehrotra, "Improving the
    Brown-Forsythe Solution to the Generalized Behrens-Fisher Problem", Communications in
    Statistics - Simulation and Computation 26 (1997), 1139-1145.
    """
    sizes = [totals.count("stepping_records") for totals in groups]
    kept = [totals for totals, n in zip(groups, sizes, strict=True) if n >= FEWEST_RECORDS]
    small = [n for n in sizes if 0 < n < FEWEST_RECORDS]
    explained = f = p_value = None
    if len(kept) > 1:
        tested = _groups(kept)
        explained = _explained(tested)
        f, p_value = _one_mean_test(tested)
    return Variation(
        explained=explained,
        f=f,
        p_value=p_value,
        groups=len(kept),
        records=sum(sizes) - sum(small),
        left_out_groups=len(small),
        left_out_records=sum(small),
    )


def best_key(by_key: Mapping[str, Sequence[Totals]]) -> KeyChoice:
    """Return the key whose groups explain most of the variation of M, ties to fewer groups.

    `by_key` has the totals of each value of each key. A key counts if it explains at least a tenth
    with p < 0.01 over the number of keys (Bonferroni), and tests at least half of the records.
    """
    tried = {key: explained_variation(groups) for key, groups in by_key.items()}
    found = [
        (-round(variation.explained, 9), variation.groups, key)
        for key, variation in tried.items()
        if variation.explained is not None
        and variation.p_value is not None
        and variation.explained >= LEAST_EXPLAINED
        and variation.p_value < SIGNIFICANCE / len(tried)
        and variation.covers_most
    ]
    return KeyChoice(min(found)[2] if found else None, tried)


def _groups(groups: Sequence[Totals]) -> _Groups:
    def column(name: str) -> FloatArray:
        return np.array([totals.rows[:, totals.columns[name]].sum() for totals in groups])

    accepted, steps = column("accepted"), column("steps")
    squares, products, step_squares = map(
        column, ("accepted_accepted", "accepted_steps", "steps_steps")
    )
    ratio = accepted / steps
    residuals = squares - 2 * ratio * products + ratio**2 * step_squares
    # The difference of large sums: what is left of an exact 0 is rounding.
    residuals = np.where(residuals > _ROUNDING * squares, residuals, 0.0)
    size = steps**2 / step_squares
    return _Groups(
        ratio=ratio,
        weight=steps / steps.sum(),
        size=size,
        variance=size / (size - 1) * residuals / steps**2,
    )


def _explained(groups: _Groups) -> float | None:
    """Return the share of the variance between records that lies between groups, 0 to 1."""
    between = max(0.0, groups.between - float(groups.noise.sum()))
    varied = between + groups.within
    return between / varied if varied else None


def _one_mean_test(groups: _Groups) -> tuple[float, float]:
    """Return F and its p value under the hypothesis of one R in all groups."""
    weight, variance, noise = groups.weight, groups.variance, groups.noise
    expected = float(noise.sum())
    if not expected:
        return (float("inf"), 0.0) if groups.between else (0.0, 1.0)
    # Both sides by Satterthwaite: a chi-square with the mean and the variance of the sum.
    spread = (weight * variance) @ (weight * variance) + (weight**2 @ variance) ** 2
    spread -= 2 * float(weight**3 @ variance**2)
    upper = expected**2 / float(spread)
    lower = expected**2 / float(noise**2 @ (1 / (groups.size - 1)))
    f = groups.between / expected
    return f, float(fdtrc(upper, lower, f))
