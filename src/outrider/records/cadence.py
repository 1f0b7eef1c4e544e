"""How evenly the events of streams arrived."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from outrider.acceptance.intervals import FloatArray
from outrider.records.reading import Cadence, InvalidRecord
from outrider.records.validation import FEWEST_GAPS, MOST_COUNTED


def cadence_of(answers: Iterable[Sequence[Any]], *, unit_ms: float = 1) -> Cadence | None:
    """Return the cadence of answers, given the gaps of each; None where there is no gap.

    `unit_ms` is what the gaps are counted in, in ms. Raises InvalidRecord for a gap that is none.
    """
    found = [_gaps_ms(gaps, unit_ms) for gaps in answers if len(gaps)]
    if not found:
        return None
    # Gaps that are all 0 have no mean to vary about.
    varied = [gaps for gaps in found if len(gaps) >= FEWEST_GAPS and gaps.mean() > 0]
    return Cadence(
        answers=len(varied),
        gap_cv_sum=float(sum(gaps.std() / gaps.mean() for gaps in varied)),
        gaps=sum(map(len, found)),
        gap_sum_ms=float(sum(gaps.sum() for gaps in found)),
        longest_gap_ms=float(max(gaps.max() for gaps in found)),
    )


def longest_gap_ms(cadences: Iterable[Cadence | None]) -> float | None:
    """Return the longest gap of those that are known, None where none is."""
    return max((each.longest_gap_ms for each in cadences if each is not None), default=None)


def _gaps_ms(gaps: Sequence[Any], unit_ms: float) -> FloatArray:
    # A bool is an int to Python, numpy makes numbers of texts, and a comparison is False for NaN.
    if {*map(type, gaps)} <= {int, float} and min(gaps) >= 0 and max(gaps) <= MOST_COUNTED:
        found = unit_ms * np.array(gaps, dtype=np.float64)
        if np.isfinite(found).all():
            return found
    raise InvalidRecord("a gap between events is no time; expected numbers from 0")
