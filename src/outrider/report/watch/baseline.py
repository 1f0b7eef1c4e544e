"""Bands from a stored report: what M of each segment was, and how well that is known."""

from collections.abc import Mapping

from outrider.acceptance.alarm_band import ChartBand, band_of_interval
from outrider.acceptance.intervals import Interval
from outrider.records.segment_keys import IDENTITY_KEYS, SegmentValue
from outrider.report.acceptance.baseline import read_baseline

_LEVEL = 0.95
_NEVER_COMPARED = frozenset(("scope", "rank"))
"""M is one figure whether answers or counters tell it, and each rank is to be as all are."""


class Baseline:
    """The segments of a report that `outrider report --format json` wrote."""

    def __init__(self, name: str) -> None:
        """Read the report in a JSON file; InvalidSetting where it is none."""
        what = "a report that `outrider report --format json` wrote"
        self._entries = read_baseline("--baseline", name, what).entries

    def band(self, values: Mapping[str, SegmentValue]) -> ChartBand | str:
        """Return the band of the segment with these values, or why the report gives none."""
        fitting = [entry for entry in self._entries if _fits(entry.segment, values)]
        exact = [entry for entry in fitting if entry.segment.get("scope") == values.get("scope")]
        found = exact or fitting
        if not found:
            return "the baseline has no such segment"
        if len(found) > 1:
            return f"the baseline has several: {', '.join(entry.name for entry in found)}"
        [entry] = found
        if entry.mean_acceptance_length is None or entry.steps < 1:
            return "the baseline does not know its M"
        if entry.mean_acceptance_length_ci is None:
            return "the baseline has no interval of its M, so nothing tells how much windows vary"
        low, high = entry.mean_acceptance_length_ci
        k = values.get("k")
        return band_of_interval(
            entry.mean_acceptance_length,
            Interval(low, high, _LEVEL, entry.clusters),
            steps=entry.steps,
            k=k if isinstance(k, int) else None,
        )


def _fits(entry: Mapping[str, SegmentValue], values: Mapping[str, SegmentValue]) -> bool:
    """Whether the two tell of one segment: a log has no model, but the same K and kind."""
    for name in (entry.keys() | values.keys()) - _NEVER_COMPARED:
        told, watched = entry.get(name), values.get(name)
        untold = name in IDENTITY_KEYS and (told is None or watched is None)
        if told != watched and not untold:
            return False
    return True
