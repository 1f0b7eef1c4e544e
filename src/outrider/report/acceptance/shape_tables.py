"""The shape of acceptance: over the steps, into the draft and along the answer."""

from collections.abc import Iterator

from outrider.acceptance.figures import SegmentFigures
from outrider.report.acceptance.bars import Bar
from outrider.report.acceptance.blocks import Cell, Table, columns
from outrider.report.acceptance.figure_cells import FigureCells, percent
from outrider.report.cells import counted, number


def histogram_table(figures: SegmentFigures) -> Table | None:
    """Show how many steps accepted how many tokens, None where no source tells."""
    histogram = figures.histogram
    if histogram is None or not sum(histogram):
        return None
    steps = sum(histogram)
    last = max((figures.k or 0), *(j for j, count in enumerate(histogram) if count), 0)
    rows = tuple(
        (f"{j}", number(count), percent(count / steps), Bar(count / steps))
        for j, count in enumerate(histogram[: last + 1])
    )
    headings = columns("accepted", "steps H_j", "% of S", "")
    return Table(headings, (("", rows),))


def position_table(figures: SegmentFigures) -> Table | None:
    """Show how far into the draft acceptance reaches, None where nothing tells."""
    found = figures.positions
    if not found:
        return None
    tail = figures.survival_estimator == "tail"
    same = all(percent(each.survival.value) == percent(each.naive.value) for each in found)
    cells = FigureCells.of(
        estimate for each in found for estimate in (each.survival, each.conditional)
    )

    def rows() -> Iterator[tuple[Cell, ...]]:
        for each in found:
            naive = () if same else (cells.percent(each.naive, interval=False),)
            yield (
                f"{each.position}",
                cells.percent(each.survival),
                Bar(each.survival.value),
                cells.percent(each.conditional),
                cells.count(each.at_risk, why="not told"),
                *naive,
                number(each.marginal, 2),
            )

    survival = "naive\nsurvival %" if tail else "survival %"
    naive = () if same else ("naive\n%",)
    headings = columns(
        *("position", survival, "", "conditional %", "at risk", *naive, "marginal\ntokens"),
    )
    body = tuple(rows())
    return Table(headings, (("", body),), (*_reach(figures, same=same), *cells.footnotes()))


def _reach(figures: SegmentFigures, *, same: bool) -> Iterator[str]:
    steps = counted(figures.steps, "step")
    if figures.survival_estimator == "tail":
        yield (
            f"Draft lengths are unknown: survival is the naive tail ratio over all {steps}, too low"
            " where drafts were shorter than K."
        )
    elif same:
        yield f"Survival by product limit; the naive tail ratio over all {steps} is the same."
    else:
        yield f"Survival by product limit; naive is the tail ratio over all {steps}."
    if figures.largest_position is None:
        yield "The data speak about no position."
    elif figures.k and figures.largest_position < figures.k:
        yield f"The data speak up to position {figures.largest_position}, not beyond."


def band_table(figures: SegmentFigures) -> Table | None:
    """Show M early and late in the answers, None without the lengths of each step."""
    if not figures.bands:
        return None
    cells = FigureCells.of(band.mean_acceptance_length for band in figures.bands)
    most = max((band.mean_acceptance_length.value or 0 for band in figures.bands), default=0)
    rows = tuple(
        (
            f"{band.start:,}+" if band.end is None else f"{band.start:,}–{band.end - 1:,}",
            number(band.steps),
            cells.mean(band.mean_acceptance_length),
            Bar((band.mean_acceptance_length.value or 0) / most if most else None),
        )
        for band in figures.bands
    )
    headings = columns("output position", "steps", "M", "")
    return Table(headings, (("", rows),), cells.footnotes())
