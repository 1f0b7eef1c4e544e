"""Every figure of one segment: what its sums say, with intervals or the reason for having none."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from outrider.acceptance.cadence import CadenceFigures, cadence_figures
from outrider.acceptance.columns import OUTPUT_BANDS
from outrider.acceptance.estimate import Estimate
from outrider.acceptance.reach import (
    SurvivalEstimator,
    estimator_of,
    histogram_of,
    position_count,
    reach_of,
)
from outrider.acceptance.segment_estimates import NO_STEP, UNKNOWN_K, segment_estimates
from outrider.acceptance.totals import Totals

_SCALARS = (
    "mean_acceptance_length",
    "mean_acceptance_length_by_request",
    "draft_acceptance_rate",
    "immediate_failure_rate",
    "full_draft_rate",
    "coverage",
)


@dataclass(frozen=True, slots=True)
class PositionFigures:
    """Draft position `position`, from 1.

    `survival` and `conditional` come from the segment's estimator, `naive` is the tail ratio over
    all steps. `at_risk` is the denominator of `conditional`: steps that accepted all before and, by
    product limit, drafted here. `marginal` is what the position adds to a step, s_r, in tokens.
    """

    position: int
    survival: Estimate
    conditional: Estimate
    naive: Estimate
    at_risk: int | None
    marginal: float | None


@dataclass(frozen=True, slots=True)
class BandFigures:
    """The steps that began at output position `start` up to `end` (None: open), in tokens."""

    start: int
    end: int | None
    steps: int
    mean_acceptance_length: Estimate


@dataclass(frozen=True, slots=True)
class SegmentFigures:
    """The figures of one segment; None and a missing Estimate are unknown, never 0.

    `requests` is None where records do not tell how many answers they cover; `clusters` is what
    intervals resample. `largest_position` is the last draft position that any step drafted and
    reached; `survival_estimator` is "tail" where draft lengths are unknown, and `survival_reason`
    then says so. `positions` is empty where nothing tells how far steps got. `bands` is empty
    without the lengths of each step. `completion_tokens` and `explained_tokens` (A + S) are over
    the records that tell both; `tokens_per_chunk` is of streams, and `cadence` None where no record
    tells when their events arrived. `repetitive_share` is the
    part of all records whose text was found to repeat itself, None where no text was looked at.
    `cached_share` is the part of the prompt tokens that came from the prefix cache, None unless all
    records tell. `stepping_records` are those with a step, which M by request is the mean of.
    """

    k: int | None
    records: int
    requests: int | None
    clusters: int
    steps: int
    steps_estimated: bool
    accepted: int
    accepted_estimated: bool
    drafted: int | None
    drafted_nominal: bool
    wasted: int | None
    histogram: tuple[int, ...] | None
    mean_acceptance_length: Estimate
    mean_acceptance_length_by_request: Estimate
    draft_acceptance_rate: Estimate
    immediate_failure_rate: Estimate
    full_draft_rate: Estimate
    coverage: Estimate
    survival_estimator: SurvivalEstimator
    positions: tuple[PositionFigures, ...]
    largest_position: int | None
    bands: tuple[BandFigures, ...]
    completion_tokens: int | None
    explained_tokens: int | None
    tokens_per_chunk: float | None
    repetitive_share: float | None
    survival_reason: str | None = None
    stepping_records: int | None = None
    cached_share: float | None = None
    cadence: CadenceFigures | None = None


def segment_figures(
    totals: Totals, *, rng: np.random.Generator, unit: str = "requests", draws: int = 2000
) -> SegmentFigures:
    """Return the figures of a segment from the sums over its records.

    `unit` names in the plural what one row of the totals is, "requests" unless the records are
    counters of a server.
    """
    count = totals.count
    estimates = segment_estimates(totals, rng=rng, unit=unit, draws=draws)
    positions = _positions(totals, estimates)
    steps, accepted, told = count("steps"), count("accepted"), count("completion_records")
    drafted = None if count("drafted_unknown") else count("drafted")
    return SegmentFigures(
        k=totals.columns.k or None,
        records=count("records"),
        requests=None if count("requests_unknown") else count("requests"),
        clusters=len(totals.rows),
        steps=steps,
        steps_estimated=count("steps_estimated") > 0,
        accepted=accepted,
        accepted_estimated=count("accepted_estimated") > 0,
        drafted=drafted,
        drafted_nominal=count("drafted_nominal") > 0,
        # An estimated A may lie above D, and no waste is below 0.
        wasted=None if drafted is None or accepted > drafted else drafted - accepted,
        histogram=histogram_of(totals),
        **{name: estimates[name] for name in _SCALARS},
        survival_estimator=estimator_of(totals),
        survival_reason=_survival_reason(totals),
        stepping_records=count("stepping_records"),
        cached_share=_share(count("cached_tokens"), count("prompt_tokens"))
        if count("cached_records") == count("records")
        else None,
        positions=positions,
        largest_position=max((p.position for p in positions if p.at_risk), default=None),
        bands=_bands(totals, estimates),
        completion_tokens=count("completion_tokens") if told else None,
        explained_tokens=count("explained_tokens") if told else None,
        tokens_per_chunk=_share(count("chunked_tokens"), count("chunks")),
        cadence=cadence_figures(totals, estimates),
        repetitive_share=_share(count("repetitive"), count("records"))
        if count("text_seen")
        else None,
    )


def _survival_reason(totals: Totals) -> str | None:
    if estimator_of(totals) == "product_limit":
        return None
    if not totals.columns.k:
        return UNKNOWN_K
    if not (steps := totals.count("steps")):
        return NO_STEP
    unknown = steps - totals.count("length_known_steps")
    return f"the draft lengths of {unknown:,} of {steps:,} steps are unknown"


def _positions(totals: Totals, estimates: Mapping[str, Estimate]) -> tuple[PositionFigures, ...]:
    positions = position_count(totals)
    reach = reach_of(totals.sums, totals.columns, estimator_of(totals), positions)
    return tuple(
        PositionFigures(
            position=r,
            survival=estimates[f"s_{r}"],
            conditional=estimates[f"c_{r}"],
            naive=estimates[f"naive_{r}"],
            at_risk=int(reach.at_risk[r - 1]),
            marginal=estimates[f"s_{r}"].value,
        )
        for r in range(1, positions + 1)
    )


def _bands(totals: Totals, estimates: Mapping[str, Estimate]) -> tuple[BandFigures, ...]:
    ends = (*OUTPUT_BANDS[1:], None)
    return tuple(
        BandFigures(start, end, steps, estimates[f"band_{band}"])
        for band, (start, end, steps) in enumerate(
            zip(OUTPUT_BANDS, ends, totals.counts("band_steps"), strict=True)
        )
        if steps
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
