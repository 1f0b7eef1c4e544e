"""All segments side by side."""

from collections.abc import Sequence

from outrider.report.acceptance.blocks import Cell, Table, columns
from outrider.report.acceptance.document import SegmentReport
from outrider.report.acceptance.figure_cells import NO_DRAFTED, NO_REQUESTS, FigureCells
from outrider.report.acceptance.roughness import Roughness
from outrider.report.cells import MISSING


def overview_table(groups: Sequence[tuple[str, Sequence[SegmentReport]]]) -> Table:
    """Show the segments side by side; each group has the title that its rows stand under."""
    everything = [each.figures for _, segments in groups for each in segments]
    weighed = any(each.draft_length is not None for _, segments in groups for each in segments)
    cells = FigureCells.of(figures.mean_acceptance_length for figures in everything)
    rows = tuple(
        (title, tuple(_overview_row(each, cells, weighed=weighed) for each in segments))
        for title, segments in groups
    )
    headings = (
        *("segment", "requ-\nests", "steps", "M", "M by\nrequest", "A/D\n%", "H_0/S\n%"),
        *("H_K/S\n%", "cover-\nage %", "wasted\ntokens"),
        *(["best\nK"] if weighed else []),
    )
    return Table(columns(*headings), rows, cells.footnotes())


def _overview_row(segment: SegmentReport, cells: FigureCells, *, weighed: bool) -> tuple[Cell, ...]:
    figures = segment.figures
    choice = segment.draft_length
    best = MISSING if choice is None else str(choice.best_k)
    rough = Roughness.of(figures)
    return (
        segment.name,
        cells.count(figures.requests, why=NO_REQUESTS),
        cells.count(figures.steps, rough=rough.steps),
        cells.mean(figures.mean_acceptance_length, rough=rough.mean),
        cells.mean(figures.mean_acceptance_length_by_request, interval=False, rough=rough.mean),
        cells.percent(figures.draft_acceptance_rate, interval=False, rough=rough.rate),
        cells.percent(figures.immediate_failure_rate, interval=False),
        cells.percent(figures.full_draft_rate, interval=False),
        cells.percent(figures.coverage, interval=False),
        cells.count(figures.wasted, why=NO_DRAFTED, rough=rough.rate),
        *([best] if weighed else []),
    )
