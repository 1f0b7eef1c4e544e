"""How much of the variation between records each key explains."""

from outrider.report.acceptance.bars import Bar
from outrider.report.acceptance.blocks import Table, columns
from outrider.report.acceptance.document import Split
from outrider.report.acceptance.figure_cells import percent

_SMALLEST_P = 0.001


def split_table(split: Split) -> Table:
    """Show the keys that were tried, the one that explains most first."""
    rows = tuple(
        (
            each.key.replace("_", " "),
            f"{each.groups:,}",
            percent(each.explained),
            Bar(each.explained),
            f"<{_SMALLEST_P}" if each.p_value < _SMALLEST_P else f"{each.p_value:.3f}",
        )
        for each in sorted(split.tried, key=lambda each: -each.explained)
    )
    return Table(columns("key", "values", "explains %", "", "p"), (("", rows),))
