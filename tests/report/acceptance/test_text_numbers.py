"""Every number of a report is in its text, and no other."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest
from tests.report.acceptance.samples import (
    SAMPLES,
)
from tests.report.acceptance.shown_text import render

from outrider.acceptance.estimate import Estimate
from outrider.report.acceptance.document import SegmentReport

each_sample = pytest.mark.parametrize("name", SAMPLES)


def numbers_in(text: str) -> Counter[str]:
    return Counter(re.findall(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?!\w)", text))


def interval(estimate: Estimate, decimals: int, scale: float = 1) -> str:
    value = f"{scale * (estimate.value or 0):.{decimals}f}"
    if estimate.interval is None:
        return value
    low, high = (scale * end for end in (estimate.interval.low, estimate.interval.high))
    return f"{value} ({low:.{decimals}f}–{high:.{decimals}f})"


def figures_of(segment: SegmentReport) -> Iterator[str]:
    """Yield how each figure of a segment must read."""
    figures = segment.figures
    counts = (figures.steps, figures.accepted, figures.drafted, figures.wasted, figures.requests)
    yield from (
        f"{count:,}" for count in (*counts, *(figures.histogram or ())) if count is not None
    )
    for mean in (figures.mean_acceptance_length, figures.mean_acceptance_length_by_request):
        yield interval(mean, 2)
    for share in (
        figures.draft_acceptance_rate,
        figures.immediate_failure_rate,
        figures.full_draft_rate,
        figures.coverage,
    ):
        if share.value is not None:
            yield interval(share, 1, 100)
    for position in figures.positions:
        yield interval(position.survival, 1, 100)
        yield interval(position.conditional, 1, 100)
        yield f"{100 * (position.naive.value or 0):.1f}"
        yield f"{position.at_risk:,}"
        yield f"{position.marginal:.2f}"
    for band in figures.bands:
        yield f"{band.steps:,}"
        yield interval(band.mean_acceptance_length, 2)
    if segment.draft_length is not None:
        for option in segment.draft_length.options:
            yield f"{option.tokens_per_step:.2f}"
            yield f"{option.step_cost:.1f}"
            yield interval(option.speed, 1)
            yield f"{100 * option.regret:.1f}"


@each_sample
def test_every_figure_of_a_segment_in_detail_is_shown(name: str) -> None:
    report = SAMPLES[name]()
    detailed = sorted(report.segments, key=lambda each: -each.figures.steps)[:3]
    text = render(report)

    for segment in detailed:
        expected = list(figures_of(segment))
        assert len(expected) >= 7
        assert [figure for figure in expected if figure not in text] == []


@each_sample
def test_a_narrow_console_shows_the_same_numbers_none_of_them_broken(name: str) -> None:
    report = SAMPLES[name]()
    wide = numbers_in(render(report, 160))

    assert sum(wide.values()) > 20
    for width in (60, 80):
        assert numbers_in(render(report, width)) >= wide


def numbers_of(content: Any) -> Iterator[float]:
    if isinstance(content, dict):
        content = list(content.values())
    if isinstance(content, list | tuple):
        for item in content:
            yield from numbers_of(item)
    elif isinstance(content, int | float):
        yield float(content)


@each_sample
def test_every_number_shown_is_one_of_the_report(name: str) -> None:
    report = SAMPLES[name]()
    values = [scale * value for value in numbers_of(asdict(report)) for scale in (1, 100)]
    for segment in (*report.segments, *report.whole):
        steps = segment.figures.steps
        values += [100 * count / steps for count in segment.figures.histogram or ()]
        values += [band.end - 1 for band in segment.figures.bands if band.end is not None]
    values += [len(report.segments), sum(report.records.no_metrics.values())]
    records = report.records
    values += [records.bad_count - len(records.bad), 100 * records.bad_count / records.read]
    values += [95, 0.001, 3, *range(9)]  # level, smallest p, segments in detail, accepted lengths
    allowed = {f"{abs(value):.{decimals}f}" for value in values for decimals in range(4)}
    words = str(asdict(report))

    shown = numbers_in(render(report, 160))

    strangers = [
        number for number in shown if number.replace(",", "") not in allowed and number not in words
    ]
    assert strangers == []
