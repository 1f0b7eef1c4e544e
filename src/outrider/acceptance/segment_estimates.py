"""The figures of a segment that have an interval, all from the same resampled clusters."""

from collections.abc import Mapping

import numpy as np

from outrider.acceptance.cadence import NO_ANSWERS, NO_GAPS
from outrider.acceptance.columns import OUTPUT_BANDS, Columns
from outrider.acceptance.estimate import Estimate, estimate
from outrider.acceptance.intervals import FloatArray
from outrider.acceptance.reach import (
    SurvivalEstimator,
    estimator_of,
    histogram_of,
    position_count,
    reach_of,
    steps_that_reached,
)
from outrider.acceptance.totals import Totals

NO_STEP = "no step had a draft (S = 0)"
NO_HISTOGRAM = "the acceptance histogram of some steps is unknown"
UNKNOWN_K = "K is unknown"

FEWEST_RECORDS = 5
"""Of simulated 95 % intervals, 78 to 87 % held from 4 clusters and about half from 2."""


def segment_estimates(
    totals: Totals, *, rng: np.random.Generator, unit: str, draws: int
) -> dict[str, Estimate]:
    """Return the estimates of `SegmentFigures` by name.

    Those of draft position r are "s_r", "c_r" and "naive_r"; "band_i" is M in output band i.
    """
    columns, estimator, positions = totals.columns, estimator_of(totals), position_count(totals)
    unknown = _unknown(totals, unit)
    undefined = _Undefined(
        draft_acceptance_rate="nothing was drafted (D = 0)",
        coverage="no record tells its decode steps",
        mean_gap_ms=NO_GAPS,
        gap_cv=NO_ANSWERS,
    )
    estimates = estimate(
        totals.rows,
        lambda sums: _figures(sums, columns, estimator, positions),
        undefined,
        rng=rng,
        draws=draws,
        unit=unit,
        alone=why_alone(totals, unit),
        fewest=FEWEST_RECORDS,
    )
    return estimates | {name: Estimate.missing(reason) for name, reason in unknown.items()}


def why_alone(totals: Totals, unit: str) -> str:
    """Return why a single cluster, one of `unit`, has no interval."""
    if unit != "requests":
        return "counters of a server do not tell requests apart"
    if totals.count("records") > 1:
        return "all records are of one cluster, which gives no interval"
    if totals.count("requests") > 1:
        return "a single record of several requests does not tell them apart"
    return "a single record gives no interval"


class _Undefined(dict[str, str]):
    """The reason for a figure whose denominator is 0; the denominator of most is steps."""

    def __missing__(self, name: str) -> str:
        return "no step reached this position" if name.startswith(("s_", "c_")) else NO_STEP


def _figures(
    sums: FloatArray, columns: Columns, estimator: SurvivalEstimator, positions: int
) -> Mapping[str, FloatArray]:
    def column(name: str) -> FloatArray:
        values: FloatArray = sums[..., columns[name]]
        return values

    steps, accepted = column("steps"), column("accepted")
    histogram = sums[..., columns.slice("histogram")]
    figures = {
        "mean_acceptance_length": 1 + accepted / steps,
        "mean_acceptance_length_by_request": column("mean_sum") / column("stepping_records"),
        "draft_acceptance_rate": accepted / column("drafted"),
        "immediate_failure_rate": histogram[..., 0] / steps,
        "full_draft_rate": histogram[..., -1] / steps,
        "coverage": column("covered_steps") / column("decode_steps"),
        "mean_gap_ms": column("gap_sum_ms") / column("gaps"),
        "gap_cv": column("gap_cv_sum") / column("gap_answers"),
    }
    reach = reach_of(sums, columns, estimator, positions)
    naive = steps_that_reached(sums, columns)[..., 1:] / steps[..., np.newaxis]
    for name, values in (("s", reach.survival), ("c", reach.conditional), ("naive", naive)):
        figures |= {f"{name}_{r + 1}": values[..., r] for r in range(positions)}
    bands = 1 + sums[..., columns.slice("band_accepted")] / sums[..., columns.slice("band_steps")]
    return figures | {f"band_{band}": bands[..., band] for band in range(len(OUTPUT_BANDS))}


def _unknown(totals: Totals, unit: str) -> dict[str, str]:
    """Return the reason for each figure whose counts are not all known."""
    unknown = {}
    if totals.count("requests_unknown") or totals.count("requests") != totals.count("records"):
        unknown["mean_acceptance_length_by_request"] = (
            "counters of a server do not tell requests apart"
            if unit != "requests"
            else "some records cover more than one request"
        )
    if totals.count("drafted_unknown"):
        unknown["draft_acceptance_rate"] = "the drafted tokens of some records are unknown"
    if not totals.columns.k:
        unknown["full_draft_rate"] = UNKNOWN_K
    if histogram_of(totals) is None:
        of_histogram = ["immediate_failure_rate", "full_draft_rate"]
        of_histogram += [f"naive_{r + 1}" for r in range(position_count(totals))]
        unknown |= dict.fromkeys(of_histogram, NO_HISTOGRAM)
    return unknown
