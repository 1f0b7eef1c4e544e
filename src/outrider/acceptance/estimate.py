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
    draws: int = 10_000,
    unit: str = "prompts",
    alone: str = "a single prompt gives no interval",
    fewest: int = FEWEST_CLUSTERS,
) -> dict[str, Estimate]:
    """Return an estimate of each of the named `figures` of the added `totals` [clusters, m].

    The intervals resample clusters, which `unit` names, and need `fewest` of them; `alone` is the
    reason where there is only one. Where prompts repeat there is one row of totals per prompt: at
    temperature 0 the repeats of one are the same answer, and would feign precision. `figures` maps
    totals [..., m] to figures [...]. `undefined` has the reason to give for each figure where its
    denominator is 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        values = figures(totals.sum(axis=0))
    intervals = cluster_bootstrap_vector(
        totals, lambda sums: np.stack(list(figures(sums).values()), axis=-1), rng=rng, draws=draws
    )
    bare = f"too few {unit} have this figure for an interval"
    if len(totals) < fewest:
        intervals = (None,) * len(values)
        bare = f"fewer than {fewest} {unit} give no interval"
    if len(totals) < FEWEST_CLUSTERS:
        bare = alone
    return {
        name: _estimate(float(value), interval, undefined[name], bare)
        for (name, value), interval in zip(values.items(), intervals, strict=True)
    }


def _estimate(value: float, interval: Interval | None, undefined: str, bare: str) -> Estimate:
    if not np.isfinite(value):
        return Estimate.missing(undefined)
    return Estimate(value, interval, reason=bare if interval is None else None)
