"""A table fits the width without breaking a number."""

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from outrider.report.acceptance.bars import Bar
from outrider.report.acceptance.blocks import Cell, Column, Table
from outrider.report.acceptance.layout import lay_out

NUMBERS = st.integers(0, 10**12).map("{:,}".format)
INTERVALS = st.tuples(NUMBERS, NUMBERS, NUMBERS).map("{0[0]} ({0[1]}–{0[2]})".format)


def render(table: Table, width: int) -> str:
    console = Console(file=StringIO(), width=width)
    for part in lay_out(table, width):
        console.print(part)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@st.composite
def tables(draw: st.DrawFn) -> Table:
    names = st.text("abc ", max_size=40)
    count = draw(st.integers(1, 8))
    row = st.tuples(names, *[draw(st.sampled_from([NUMBERS, INTERVALS])) for _ in range(count)])
    rows: list[tuple[Cell, ...]] = draw(st.lists(row, min_size=1, max_size=4))
    columns = (Column("name", words=True), *(Column(f"c{place}") for place in range(count)))
    return Table(columns, (("", tuple(rows)),))


@given(tables(), st.integers(60, 120))
def test_every_number_is_there_whole_and_no_line_is_too_wide(table: Table, width: int) -> None:
    text = render(table, width)

    assert max(map(cell_len, text.splitlines())) <= width
    shown = text.split()
    for _, rows in table.groups:
        for row in rows:
            for cell in row[1:]:
                assert isinstance(cell, str)
                assert all(part in shown for part in cell.split())


TABLE = Table(
    (Column("name", words=True), Column("figure"), Column(""), Column("count")),
    (("", (("first", "1.25 (1.00–1.50)", Bar(1.0), "1,234"),)),),
)


def test_bars_give_way_before_intervals_go_below_their_figures() -> None:
    bars = {width: render(TABLE, width).count("█") for width in (60, 45, 40, 30)}

    assert bars == {60: 24, 45: 12, 40: 10, 30: 8}
    assert "1.25 (1.00–1.50)" in render(TABLE, 40)
    assert "1.25 (" not in render(TABLE, 30)


def test_what_fits_in_no_manner_becomes_several_tables_with_the_first_column_each() -> None:
    text = render(TABLE, 22)

    assert text.count("name") == text.count("first") == 2
    assert "(1.00–1.50)" in text
    assert "1,234" in text


@pytest.mark.parametrize("title", ["", "a group"])
def test_a_group_stands_under_its_title(title: str) -> None:
    text = render(Table((Column("name", words=True),), ((title, (("row",),)),)), 40)

    assert [line.strip() for line in text.splitlines() if line.strip()][2:] == [
        *filter(None, [title]),
        "row",
    ]
