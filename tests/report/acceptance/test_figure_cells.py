"""A figure as a cell says no more than the data do, and why when it says nothing."""

import pytest

from outrider.acceptance.estimate import Estimate
from outrider.acceptance.intervals import Interval
from outrider.report.acceptance.figure_cells import FigureCells, percent


def measured(value: float, low: float, high: float) -> Estimate:
    return Estimate(value, Interval(low, high, 0.95, 9), None)


WIDE = measured(2.3456, 2.1, 2.5)
NARROW = measured(2.3456, 2.3401, 2.3499)
ALONE = Estimate(2.3456, None, "one request")


def test_a_third_decimal_needs_a_narrow_interval() -> None:
    cells = FigureCells()

    assert cells.mean(WIDE) == "2.35 (2.10–2.50)"
    assert cells.mean(NARROW) == "2.346 (2.340–2.350)"
    assert cells.mean(ALONE) == "2.35 [a]"


def test_one_reason_for_all_missing_intervals_is_told_once() -> None:
    cells = FigureCells.of([ALONE, ALONE, Estimate.missing("never drafted")])

    assert cells.mean(ALONE) == "2.35"
    assert cells.percent(Estimate.missing("never drafted")) == "– [a]"
    assert cells.footnotes() == ("[a] never drafted", "No intervals: one request.")


@pytest.mark.parametrize("others", [[WIDE], [Estimate(1.0, None, "another reason")]])
def test_different_reasons_are_told_at_their_figures(others: list[Estimate]) -> None:
    cells = FigureCells.of([ALONE, *others])

    assert cells.mean(ALONE) == "2.35 [a]"
    assert cells.footnotes() == ("[a] one request",)


def test_what_is_not_counted_is_marked_and_the_mark_explained_once() -> None:
    cells = FigureCells()

    assert cells.count(1350, rough="estimated") == "≈1,350"
    assert cells.mean(WIDE, rough="estimated") == "≈2.35 (2.10–2.50)"
    assert cells.footnotes() == ("≈ estimated",)


def test_unknown_is_not_0_and_not_marked_as_rough() -> None:
    cells = FigureCells()

    assert cells.count(0) == "0"
    assert cells.count(None, why="not told", rough="estimated") == "– [a]"
    assert cells.footnotes() == ("[a] not told",)
    assert percent(None) == "–"
    assert percent(0.0) == "0.0"


def test_there_are_letters_for_more_reasons_than_the_alphabet_has() -> None:
    cells = FigureCells()

    marks = [cells.count(None, why=f"reason {place}") for place in range(703)]

    assert [marks[place] for place in (0, 25, 26, 701, 702)] == [
        *("– [a]", "– [z]", "– [aa]", "– [zz]", "– [aaa]"),
    ]
    assert len(set(marks)) == 703
