"""A gate against regressions: does the mean acceptance length lie below what it should be?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Literal

from scipy.special import ndtri

from outrider.acceptance.estimate import Estimate
from outrider.acceptance.intervals import Interval
from outrider.errors import InvalidSetting
from outrider.report.acceptance.baseline import BaselineSegment, read_baseline, segment_key
from outrider.report.acceptance.document import AcceptanceReport, SegmentReport

CONFIDENCE = 0.95
"""How sure the gate is that M lies below the threshold before it fails."""

_WHAT = "a number, or a report that `outrider report --format json` wrote"

Outcome = Literal["pass", "fail", "unknown"]


@dataclass(frozen=True, slots=True)
class GateResult:
    """The outcome for one segment, told in a line."""

    outcome: Outcome
    line: str


@dataclass(frozen=True, slots=True)
class Threshold:
    """What M should reach; `standard_error` is 0 for a number that was given."""

    m: float
    standard_error: float
    source: str


def run_gate(report: AcceptanceReport, wanted: str) -> tuple[GateResult, ...]:
    """Hold the report against a number, or against the baseline report in the JSON file `wanted`.

    A number is held against all records of one scope, engine and K, a baseline against these and
    each of its segments. The gate fails where M lies below with 95 % confidence (one-sided, from
    both intervals), or at all where there is no interval. A segment of the baseline that the report
    lacks is unknown. Raises InvalidSetting for what is neither number nor report.
    """
    number = _number(wanted)
    if number is not None:
        threshold = Threshold(number, 0.0, f"{number:g}")
        return tuple(_judge(each, threshold) for each in report.whole or report.segments)
    there = {segment_key(each.values): each for each in (*report.segments, *report.whole)}
    baseline = read_baseline("--fail-under", wanted, _WHAT)
    results = tuple(_against(there, baseline.entries, wanted))
    if all(result.outcome == "unknown" for result in results):
        raise InvalidSetting(
            f"--fail-under {wanted} has no segment of this report",
            "a baseline of the same scope, engine, K and model",
            "store a new baseline",
        )
    return results


def _against(
    there: Mapping[str, SegmentReport], baseline: Sequence[BaselineSegment], source: str
) -> Iterator[GateResult]:
    for entry in baseline:
        if entry.mean_acceptance_length is None:
            continue
        segment = there.get(segment_key(entry.segment))
        if segment is None:
            yield GateResult("unknown", f"{entry.name}: in {source}, not in this report")
            continue
        ends = entry.mean_acceptance_length_ci
        error = 0.0 if ends is None else _standard_error(*ends)
        yield _judge(segment, Threshold(entry.mean_acceptance_length, error, source))


def _judge(segment: SegmentReport, threshold: Threshold) -> GateResult:
    figure = segment.figures.mean_acceptance_length
    if figure.value is None:
        return GateResult("unknown", f"{segment.name}: M is unknown ({figure.reason})")
    below = threshold.m - figure.value
    if figure.interval is None:
        failed, how = below > 0, "no interval, so the values alone are compared"
    else:
        error = sqrt(
            _standard_error(figure.interval.low, figure.interval.high) ** 2
            + threshold.standard_error**2
        )
        failed = below > float(ndtri(CONFIDENCE)) * error
        how = _range(figure)
    relation = "below" if failed else "not shown to be below" if below > 0 else "at or above"
    return GateResult(
        "fail" if failed else "pass",
        f"{segment.name}: M = {figure.value:.3f} ({how}) is {relation} {threshold.m:.3f}"
        f" ({threshold.source})",
    )


def _range(figure: Estimate) -> str:
    interval = figure.interval
    assert isinstance(interval, Interval)
    return f"95 % interval {interval.low:.3f}–{interval.high:.3f}"


def _standard_error(low: float, high: float) -> float:
    return (high - low) / (2 * float(ndtri(0.975)))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if not isfinite(number):
        raise InvalidSetting(f"--fail-under {text}", "a finite number", "give the least M allowed")
    return number
