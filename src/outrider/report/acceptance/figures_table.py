"""Every figure of one segment, each with what it is a share or mean of."""

from collections.abc import Iterator

from outrider.acceptance.cadence import CadenceFigures
from outrider.acceptance.estimate import Estimate
from outrider.acceptance.figures import SegmentFigures
from outrider.report.acceptance.blocks import Cell, Column, Table
from outrider.report.acceptance.document import SegmentReport
from outrider.report.acceptance.figure_cells import NO_DRAFTED, FigureCells, percent
from outrider.report.acceptance.roughness import Roughness
from outrider.report.cells import counted, number


def figures_table(segment: SegmentReport) -> Table:
    """Show every figure of one segment with its interval and what it is a share or mean of."""
    figures = segment.figures
    cells = FigureCells.of(
        (
            figures.mean_acceptance_length,
            figures.mean_acceptance_length_by_request,
            figures.draft_acceptance_rate,
            figures.immediate_failure_rate,
            figures.full_draft_rate,
            figures.coverage,
            *_cadence_estimates(figures),
        )
    )
    rows = tuple(_figure_rows(figures, cells))
    return Table(
        (Column("figure", words=True), Column("value"), Column("of what", words=True)),
        (("", rows),),
        cells.footnotes(),
    )


def _figure_rows(figures: SegmentFigures, cells: FigureCells) -> Iterator[tuple[Cell, ...]]:
    rough = Roughness.of(figures)
    steps = cells.count(figures.steps, rough=rough.steps)
    accepted = cells.count(figures.accepted, rough=rough.accepted)
    drafted = cells.count(figures.drafted, why=NO_DRAFTED, rough=rough.drafted)
    histogram = figures.histogram
    yield (
        "M",
        cells.mean(figures.mean_acceptance_length, rough=rough.mean),
        f"tokens per step: {steps} steps, {accepted} accepted",
    )
    yield (
        "M by request",
        cells.mean(figures.mean_acceptance_length_by_request, rough=rough.mean),
        _requests(figures),
    )
    yield (
        "A/D %",
        cells.percent(figures.draft_acceptance_rate, rough=rough.rate),
        f"{accepted} accepted of {drafted} drafted",
    )
    for label, estimate, count in (
        ("H_0/S %", figures.immediate_failure_rate, histogram[0] if histogram else None),
        ("H_K/S %", figures.full_draft_rate, histogram[-1] if histogram and figures.k else None),
    ):
        of = f"{number(count)} of {steps} steps" if count is not None else f"of {steps} steps"
        yield label, cells.percent(estimate), of
    yield "coverage %", cells.percent(figures.coverage), "share of decode steps with a draft"
    yield (
        "wasted",
        cells.count(figures.wasted, why=NO_DRAFTED, rough=rough.rate),
        f"of {drafted} drafted tokens",
    )
    yield from _text_rows(figures, cells)


def _cadence_estimates(figures: SegmentFigures) -> tuple[Estimate, ...]:
    cadence = figures.cadence
    return () if cadence is None else (cadence.mean_gap_ms, cadence.gap_cv)


def _cadence_rows(cadence: CadenceFigures, cells: FigureCells) -> Iterator[tuple[Cell, ...]]:
    yield (
        "mean gap ms",
        cells.rate(cadence.mean_gap_ms, 1),
        f"between events within an answer: {counted(cadence.gaps, 'gap')}",
    )
    answers = "" if cadence.gap_cv.value is None else f": {counted(cadence.answers, 'answer')}"
    yield "gap CV", cells.rate(cadence.gap_cv, 2), f"within an answer, each counts once{answers}"
    mean = cadence.mean_gap_ms.value
    times = f", {number(cadence.longest_gap_ms / mean, 1)} times the mean" if mean else ""
    yield "longest gap ms", number(cadence.longest_gap_ms, 1), f"within an answer{times}"


def _requests(figures: SegmentFigures) -> str:
    records = counted(figures.records, "record")
    if figures.requests is None:
        return f"each counts once: {records}, requests unknown"
    requests = counted(figures.requests, "request")
    over = requests if figures.requests == figures.records else f"{requests} in {records}"
    # Where records were added up, fewer clusters than records are resampled.
    resampled = (
        "" if figures.clusters == figures.records else f", resampled as {figures.clusters:,}"
    )
    stepping = figures.stepping_records
    with_steps = "" if stepping in {None, figures.records} else f", {number(stepping)} with a step"
    return f"each counts once: {over}{with_steps}{resampled}"


def _text_rows(figures: SegmentFigures, cells: FigureCells) -> Iterator[tuple[Cell, ...]]:
    if figures.completion_tokens is not None:
        explained = (
            ""
            if figures.explained_tokens is None
            else f"of them {number(figures.explained_tokens)} are A + S"
        )
        yield "output tokens", number(figures.completion_tokens), explained
    if figures.tokens_per_chunk is not None:
        yield "per chunk", number(figures.tokens_per_chunk, 2), "tokens per event of a stream"
    if figures.cadence is not None:
        yield from _cadence_rows(figures.cadence, cells)
    if figures.cached_share is not None:
        yield "cached %", percent(figures.cached_share), "of the prompt tokens, from prefix caching"
    if figures.repetitive_share is not None:
        yield (
            "repetitive %",
            percent(figures.repetitive_share),
            "of the answers were found to repeat themselves",
        )
