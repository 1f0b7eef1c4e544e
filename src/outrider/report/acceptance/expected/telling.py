"""Which expectations are told in full, and their row beside the others."""

from collections.abc import Sequence

from outrider.report.acceptance.document import AcceptanceReport, SegmentReport
from outrider.report.acceptance.expected.expectation import Expectation
from outrider.report.cells import MISSING, interval_text, number

Held = tuple[SegmentReport, Expectation]

ROW_HEADINGS = ("segment", "outcome", "expected", "measured M", "tokens", "%")

MOST_TOLD = 3
"""Segments that are told in a sentence; the rows of the others say enough."""


def held_segments(report: AcceptanceReport) -> tuple[Held, ...]:
    """Return the segments that were held against something, those without a split first."""
    parts = [
        each for each in report.segments if each.values not in [w.values for w in report.whole]
    ]
    return tuple(
        (segment, segment.expected)
        for segment in (*report.whole, *parts)
        if segment.expected is not None
    )


def asked_of(held: Sequence[Held]) -> str:
    """Return what the segments were held against, in the words of whoever asked."""
    return ", ".join(dict.fromkeys(expectation.source for _, expectation in held))


def told_in_full(report: AcceptanceReport) -> tuple[Held, ...]:
    """Return the segments to tell in a sentence, first the one whose causes are gone through.

    These are the records without a split: that its parts lie on both sides of one figure is no
    finding. What is not as expected goes first, then what has more steps.
    """
    held = [
        (segment, segment.expected)
        for segment in report.whole or report.segments
        if segment.expected is not None
    ]
    held.sort(key=lambda each: (not each[1].causes, -each[0].figures.steps))
    return tuple(held[:MOST_TOLD])


def causes_title(told: Sequence[Held]) -> str:
    """Return the heading of the checklist, which is that of the first segment."""
    return f"What may cause it{f', {told[0][0].name}' if len(told) > 1 else ''}"


def row(segment: SegmentReport, expectation: Expectation) -> tuple[str, ...]:
    """Return one segment's cells under `ROW_HEADINGS`."""
    m = segment.figures.mean_acceptance_length
    share = expectation.difference_share
    return (
        segment.name,
        expectation.outcome,
        _expected(expectation),
        MISSING if m.value is None else interval_text(m, 2),
        _signed(expectation.difference_tokens, 2),
        _signed(None if share is None else 100 * share, 0),
    )


def _expected(expectation: Expectation) -> str:
    if expectation.expected is None:
        return MISSING
    k = "" if expectation.expected_k is None else f", K = {expectation.expected_k}"
    return f"{expectation.expected:.4g}{k}"


def _signed(value: float | None, decimals: int) -> str:
    if value is None:
        return MISSING
    text = number(abs(value), decimals)
    return text if float(text.replace(",", "")) == 0 else f"{'−' if value < 0 else '+'}{text}"
