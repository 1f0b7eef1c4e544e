"""What every K is worth."""

from collections.abc import Iterable, Iterator

from outrider.report.acceptance.blocks import Cell, Column, Table, columns
from outrider.report.acceptance.document import SegmentReport
from outrider.report.acceptance.figure_cells import APPROXIMATELY, FigureCells, percent
from outrider.report.cells import number


def draft_length_table(segment: SegmentReport) -> Table | None:
    """Show what every K is worth, the best one marked, None where nothing can be said."""
    choice = segment.draft_length
    if choice is None:
        return None
    cells = FigureCells.of(option.speed for option in choice.options)
    recorded = segment.figures.k or 0
    label = f"estimated from drafts of up to {recorded}"
    costs = fewest_decimals([option.step_cost for option in choice.options])

    def rows() -> Iterator[tuple[Cell, ...]]:
        for option in choice.options:
            rough = label if choice.estimated and 0 < option.k < recorded else None
            tokens = number(option.tokens_per_step, 2)
            yield (
                "0 (off)" if option.k == 0 else f"{option.k}",
                f"{APPROXIMATELY}{tokens}" if rough else tokens,
                number(option.step_cost, costs),
                cells.rate(option.speed, 2 if choice.relative else 1, rough=rough),
                percent(option.regret),
                "← best" if option.k == choice.best_k else "",
            )

    cost, speed = (
        ("cost in\nplain steps", "tokens per\nplain step")
        if choice.relative
        else ("step\nms", "tokens/s")
    )
    headings = (
        *columns("K", "tokens\nper step", cost, speed, "regret\n%"),
        Column("", words=True),
    )
    body = tuple(rows())
    return Table(headings, (("", body),), cells.footnotes())


def fewest_decimals(values: Iterable[float], most: int = 3) -> int:
    """Return how many decimals show all the values to `most` decimals, without zeros at the end.

    >>> fewest_decimals([16.2, 18.0]), fewest_decimals([1, 2]), fewest_decimals([1 / 3])
    (1, 0, 3)
    """
    shown = [f"{value:.{most}f}".rstrip("0").partition(".")[2] for value in values]
    return max(map(len, shown), default=0)
