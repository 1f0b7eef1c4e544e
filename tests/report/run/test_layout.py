from io import StringIO

import pytest
from rich.console import Console

from outrider.report.run.layout import lay_out
from outrider.report.run.tables import ReportTable

TABLE = ReportTable(
    title="Acceptance",
    headings=("S", "M"),
    sections=(("overall", (("k1", "1,234", "1.42 (1.31–1.55)"), ("k4", "7", "– [a]"))),),
    footnotes=("[a] no step had a draft",),
)


def lines(width: int, *, smoke: bool = False) -> list[str]:
    console = Console(file=StringIO(), width=200)
    console.print(lay_out(TABLE, console, width, smoke=smoke))
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_wide_table_keeps_columns_two_spaces_apart() -> None:
    assert lines(80) == [
        "arm          S                 M",
        "────────────────────────────────",
        "overall",
        " k1      1,234  1.42 (1.31–1.55)",
        " k4          7             – [a]",
    ]


def test_a_tighter_table_keeps_them_one_apart() -> None:
    assert lines(31)[3] == " k1     1,234 1.42 (1.31–1.55)"


@pytest.mark.parametrize("width", [29, 25])
def test_a_narrow_table_has_the_intervals_below_their_figures(width: int) -> None:
    assert lines(width)[3:] == [
        " k1     1,234        1.42",
        "              (1.31–1.55)",
        " k4         7       – [a]",
    ]


def test_each_row_of_a_smoke_run_says_so() -> None:
    assert [line.endswith("smoke") for line in lines(80, smoke=True)[2:]] == [False, True, True]
