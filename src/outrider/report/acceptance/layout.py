"""A table laid out for the width at hand."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich import box
from rich import table as rich
from rich.cells import cell_len
from rich.text import Text

from outrider.report.acceptance.bars import Bar
from outrider.report.acceptance.blocks import Cell, Table
from outrider.report.acceptance.literal import literal

_NARROWEST_WORDS = 16
_INTERVAL = " ("


@dataclass(frozen=True, slots=True)
class _Manner:
    """How roomy a table is: spaces between columns, width of bars, intervals on own lines."""

    gap: int
    bar: int
    fold: bool


_MANNERS = (
    _Manner(gap=2, bar=24, fold=False),
    _Manner(gap=2, bar=12, fold=False),
    _Manner(gap=1, bar=10, fold=False),
    _Manner(gap=1, bar=8, fold=True),
)
"""From roomy to narrow."""


def lay_out(table: Table, width: int) -> Iterator[rich.Table]:
    """Yield the table in the roomiest manner that fits `width` columns.

    What fits in none becomes several tables, each with the first column: numbers are never wrapped.
    """
    everything = range(len(table.columns))
    for manner in _MANNERS:
        widths = [_least_width(table, place, manner) for place in everything]
        if _total(widths, manner) <= width:
            yield _lay_out(table, list(everything), manner)
            return
    part = [0]
    for place in everything[1:]:
        if len(part) > 1 and _total([widths[each] for each in (*part, place)], manner) > width:
            yield _lay_out(table, part, manner)
            part = [0]
        part.append(place)
    yield _lay_out(table, part, manner)


def _total(widths: list[int], manner: _Manner) -> int:
    return sum(widths) + manner.gap * (len(widths) - 1)


def _least_width(table: Table, place: int, manner: _Manner) -> int:
    """Return the width below which a number of the column or its heading would be broken."""
    column = table.columns[place]
    cells = [
        _shown(row[place], manner, numbers=not column.words)
        for _, rows in table.groups
        for row in rows
    ]
    lines = [line for text in (column.heading, *cells) for line in text.split("\n")]
    natural = max(map(cell_len, lines))
    return min(natural, _NARROWEST_WORDS) if column.words else natural


def _lay_out(table: Table, places: list[int], manner: _Manner) -> rich.Table:
    columns = [table.columns[place] for place in places]
    # The box itself sets columns one space apart.
    laid_out = rich.Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, manner.gap - 1, 0, 0),
    )
    for place, column in zip(places, columns, strict=True):
        bars = any(isinstance(row[place], Bar) for _, rows in table.groups for row in rows)
        laid_out.add_column(
            Text(column.heading),
            justify="left" if bars or column.words else "right",
            no_wrap=not column.words,
            overflow="fold",
            style="cyan" if bars else "",
        )
    for title, rows in table.groups:
        if title:
            laid_out.add_section()
            laid_out.add_row(Text(title, style="bold"))
        for row in rows:
            shown = (
                _shown(row[place], manner, numbers=not column.words)
                for place, column in zip(places, columns, strict=True)
            )
            laid_out.add_row(*map(Text, shown))
    return laid_out


def _shown(cell: Cell, manner: _Manner, *, numbers: bool) -> str:
    if isinstance(cell, Bar):
        return cell.draw(manner.bar)
    text = literal(cell)
    return text.replace(_INTERVAL, "\n(") if numbers and manner.fold else text
