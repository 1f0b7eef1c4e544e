"""A figure with its interval, or the reason that it lacks either."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from outrider.acceptance.intervals import (
    FEWEST_CLUSTERS,
    FloatArray,
    Interval,
    cluster_bootstrap_vector,
)

Figures = Mapping[str, FloatArray]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A measured `value` and its `interval`; where either is None, `reason` says why."""

    value: float | None
    interval: Interval | None
    reason: str | None

    @classmethod
    def missing(cls, reason: str) -> Self:
        """Return the estimate of a figure that cannot be had."""
        return cls(value=None, interval=None, reason=reason)


def estimate(
    totals: FloatArray,
    figures: Callable[[FloatArray], Figures],
    undefined: Mapping[str, str],
    *,
    rng: np.random.Generator,
) -> dict[str, Estimate]:
    """Return an estimate of each of the named `figures` of the added `totals` [prompts, m].

    There is one row of totals per prompt, since prompts are what the intervals resample: at
    temperature 0 the repeats of one are the same answer, and would feign precision. `figures`
    maps totals [..., m] to figures [...]. `undefined` has the reason to give for each figure
    where its denominator is 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        values = figures(totals.sum(axis=0))
    intervals = cluster_bootstrap_vector(
        totals, lambda sums: np.stack(list(figures(sums).values()), axis=-1), rng=rng
    )
    return {
        name: _estimate(float(value), interval, undefined[name], prompts=len(totals))
        for (name, value), interval in zip(values.items(), intervals, strict=True)
    }


def _estimate(value: float, interval: Interval | None, undefined: str, prompts: int) -> Estimate:
    if not np.isfinite(value):
        return Estimate.missing(undefined)
    if interval is not None:
        return Estimate(value, interval, reason=None)
    if prompts < FEWEST_CLUSTERS:
        return Estimate(value, None, reason="a single prompt gives no interval")
    return Estimate(value, None, reason="too few prompts have this figure for an interval")
