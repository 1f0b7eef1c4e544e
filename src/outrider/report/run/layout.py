"""A report table laid out for the width at hand."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from outrider.report.run.tables import ReportTable

_UNBOUNDED = 10_000


def lay_out(table: ReportTable, console: Console, width: int, *, smoke: bool) -> Table:
    """Return the roomiest layout that fits `width` columns, else the narrowest.

    Columns first move from two spaces apart to one, then intervals go below their figures. In a
    smoke run every row says so.
    """
    for gap, fold in ((2, False), (1, False), (1, True)):
        laid_out = _lay_out(table, gap=gap, fold=fold, smoke=smoke)
        options = console.options.update(width=_UNBOUNDED)
        if console.measure(laid_out, options=options).maximum <= width:
            break
    return laid_out


def _lay_out(table: ReportTable, *, gap: int, fold: bool, smoke: bool) -> Table:
    # The box itself sets columns one space apart.
    laid_out = Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0)
    )
    laid_out.add_column(Text("arm"))
    for heading in table.headings:
        laid_out.add_column(Text(heading), justify="right", overflow="fold")
    if smoke:
        laid_out.add_column("")
    for segment, rows in table.sections:
        laid_out.add_row(Text(segment, style="bold"))
        for arm, *cells in rows:
            shown = [cell.replace(" (", "\n(") if fold else cell for cell in cells]
            mark = ["smoke"] if smoke else []
            laid_out.add_row(*map(Text, (f" {arm}", *shown, *mark)))
    return laid_out
