"""Holds every segment of a report against what was expected."""

from dataclasses import replace

from outrider.acceptance.expectation import (
    ExpectedMean,
    MeanAtK,
    Outcome,
    barely_accepts,
    compare,
    least_k,
    mean_at,
)
from outrider.acceptance.flags import BROKEN_DRAFTER_CHECK, LOOKUP_METHODS
from outrider.errors import InvalidSetting
from outrider.report.acceptance.document import AcceptanceReport, SegmentReport
from outrider.report.acceptance.expected.asked import Asked, Figure
from outrider.report.acceptance.expected.case import Case, values_of
from outrider.report.acceptance.expected.causes import find_causes
from outrider.report.acceptance.expected.expectation import Expectation
from outrider.report.cells import interval_text


def held_against(report: AcceptanceReport, asked: Asked) -> AcceptanceReport:
    """Return the report with the expectation of each segment.

    Raises InvalidSetting where a stored report has a figure for none of them.
    """
    if report.segments and not any(asked.of(each.values) for each in _all(report)):
        raise InvalidSetting(
            f"--expect {asked.source} has no segment of this report",
            "a report with the same tags, or without a split",
            "store it again with the same --by",
        )

    def held(segment: SegmentReport) -> SegmentReport:
        return replace(segment, expected=_expectation(segment, report.segments, asked))

    return replace(
        report,
        segments=tuple(map(held, report.segments)),
        whole=tuple(map(held, report.whole)),
        pooled=None if report.pooled is None else held(report.pooled),
    )


def _all(report: AcceptanceReport) -> tuple[SegmentReport, ...]:
    return (*report.segments, *report.whole)


def _expectation(
    segment: SegmentReport, parts: tuple[SegmentReport, ...], asked: Asked
) -> Expectation:
    figure = asked.of(segment.values)
    if figure is None:
        lacks = "it has no segment of these values, or several under other conditions"
        return _not_compared(asked.source, None, f"Cannot be compared with {asked.source}: {lacks}")
    expected = figure.mean.at(segment.figures.k)
    here = mean_at(segment.figures, expected.k)
    if here is None:
        reason = segment.figures.mean_acceptance_length.reason
        return _not_compared(figure.source, figure, f"Cannot be compared: M is unknown ({reason})")
    outcome, tokens = _compare(segment, here, expected)
    case = Case(segment, parts, figure, expected, here, outcome)
    compared = outcome != "cannot be compared"
    return Expectation(
        source=figure.source,
        expected=figure.mean.value,
        expected_low=figure.mean.low,
        expected_high=figure.mean.high,
        expected_k=figure.mean.k,
        outcome=outcome,
        difference_tokens=tokens if compared else None,
        difference_share=tokens / expected.value if compared else None,
        text=_text(case, tokens),
        causes=() if outcome == "as expected" else find_causes(case),
    )


def _compare(
    segment: SegmentReport, here: MeanAtK, expected: ExpectedMean
) -> tuple[Outcome, float]:
    k = segment.figures.k
    if expected.k is None and k is not None and expected.low > k + 1:
        return "cannot be compared", 0.0
    return compare(here, expected)


def _not_compared(source: str, figure: Figure | None, text: str) -> Expectation:
    mean = None if figure is None else figure.mean
    return Expectation(
        source=source,
        expected=mean.value if mean else None,
        expected_low=mean.low if mean else None,
        expected_high=mean.high if mean else None,
        expected_k=mean.k if mean else None,
        outcome="cannot be compared",
        difference_tokens=None,
        difference_share=None,
        text=text,
        causes=(),
    )


def _text(case: Case, tokens: float) -> str:
    text = _relation(case, tokens)
    if case.segment.figures.mean_acceptance_length.interval is None:
        text += "; without an interval this may be chance"
    if not _broken(case):
        return text
    return (
        f"{text}. Next to nothing is accepted, which points to a broken drafter rather than to"
        f" prompts or settings: the wrong pair of checkpoints, the wrong layers of hidden states,"
        f" or another template. First {BROKEN_DRAFTER_CHECK}"
    )


def _relation(case: Case, tokens: float) -> str:
    expected = case.expected
    measured = f"M = {interval_text(case.segment.figures.mean_acceptance_length, 2)}"
    wanted = _wanted(case)
    k = case.segment.figures.k
    if case.outcome == "as expected":
        return f"{measured} agrees with {wanted}"
    if case.outcome == "cannot be compared":
        if expected.k is None and k is not None:
            return (
                f"{measured} cannot be compared with {wanted}: at K = {k} a step gives at most"
                f" {k + 1} tokens, so that figure is of K ≥ {least_k(expected.low)}"
            )
        return (
            f"{measured} at K = {k} cannot be compared with {wanted}: at K = {expected.k} these"
            f" steps would give anything from {case.here.low:.2f} to {case.here.high:.2f}"
        )
    size = f"{abs(tokens):.2f} tokens ({100 * abs(tokens) / expected.value:.0f} %)"
    if k is None or expected.k in (None, k):
        return f"{measured} is {size} {case.outcome} {wanted}"
    nearest = case.here.high if case.outcome == "below" else case.here.low
    return (
        f"{measured} at K = {k} is {case.outcome} {wanted}: at K = {expected.k} these steps give"
        f" {'at most' if case.outcome == 'below' else 'at least'} {nearest:.2f}, still {size}"
        f" {case.outcome}"
    )


def _wanted(case: Case) -> str:
    mean = case.figure.mean
    k = "" if mean.k is None else f" at K = {mean.k}"
    text = f"the expected {mean.value:.4g}{k}"
    if case.expected is not mean:
        text += f", which is {case.expected.value:.2f} with drafts cut to {case.expected.k}"
    return text


def _broken(case: Case) -> bool:
    if LOOKUP_METHODS & set(values_of(case.segment, "method") or ()) or case.outcome == "above":
        return False
    flagged = any(flag.code == "broken_drafter" for flag in case.segment.flags)
    return flagged or barely_accepts(case.segment.figures, case.figure.mean.value)
