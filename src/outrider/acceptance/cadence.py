"""How evenly the events of streams arrived, over the records of one segment."""

from collections.abc import Mapping
from dataclasses import dataclass

from outrider.acceptance.estimate import Estimate
from outrider.acceptance.totals import Totals

NO_GAPS = "the source does not tell when the events of a stream arrived"
NO_ANSWERS = "the source does not tell the gaps of single answers, or each has fewer than two"


@dataclass(frozen=True, slots=True)
class CadenceFigures:
    """The gaps between events within an answer, in ms; the wait for the first event is none.

    `gap_cv` is the mean over `answers` with at least two gaps of the coefficient of variation
    (standard deviation over mean, from 0) of each. `mean_gap_ms` and `longest_gap_ms` are over all
    `gaps`. Under speculation one event carries the tokens of a whole step, so a gap is a step.
    """

    gaps: int
    answers: int
    mean_gap_ms: Estimate
    gap_cv: Estimate
    longest_gap_ms: float


def cadence_figures(totals: Totals, estimates: Mapping[str, Estimate]) -> CadenceFigures | None:
    """Return the cadence of a segment, None where no record tells of gaps."""
    if totals.longest_gap_ms is None:
        return None
    return CadenceFigures(
        gaps=totals.count("gaps"),
        answers=totals.count("gap_answers"),
        mean_gap_ms=estimates["mean_gap_ms"],
        gap_cv=estimates["gap_cv"],
        longest_gap_ms=totals.longest_gap_ms,
    )
