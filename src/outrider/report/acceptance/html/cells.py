"""The cells of the page's tables: a number with its interval, its label, or why it is missing."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from outrider.acceptance.estimate import Estimate
from outrider.report.cells import MISSING, number

PERCENT = 100


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: `text`, a quieter line `below` it, and the number from 1 of its footnote."""

    text: str
    below: str = ""
    note: int | None = None

    @property
    def known(self) -> bool:
        """Whether there is a number in it."""
        return self.text not in {"", MISSING}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers: its heading, the symbol shown under it, and the one it is defined by."""

    heading: str
    symbol: str = ""
    defined: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its heading with a quieter line below, and one cell per column."""

    heading: str
    cells: tuple[Cell, ...]
    below: str = ""
    best: bool = False


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table of the page; `key` is unique in it, and `notes` are numbered from 1.

    `remark` is what goes for all of it.
    """

    key: str
    caption: str
    first: Column
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    remark: str = ""


@dataclass(slots=True)
class Notes:
    """The distinct reasons that the cells of one table refer to by number."""

    reasons: list[str] = field(default_factory=list)

    def count(self, value: int | None, reason: str, *, label: str = "") -> Cell:
        """Return a count, labelled where it was not counted, or its absence with the reason."""
        if value is None:
            return self.missing(reason)
        return Cell(number(value), below=label)

    def estimate(self, figure: Estimate, decimals: int, *, label: str = "") -> Cell:
        """Return a figure with its interval below, or why it lacks either."""
        return self._cell(figure, decimals, 1, label)

    def share(self, figure: Estimate, *, label: str = "") -> Cell:
        """Return a share of 0 to 1 in per cent."""
        return self._cell(figure, 1, PERCENT, label)

    def missing(self, reason: str | None) -> Cell:
        """Return the cell of a number that is not known."""
        return Cell(MISSING, note=self._mark(reason))

    def _cell(self, figure: Estimate, decimals: int, scale: int, label: str) -> Cell:
        if figure.value is None:
            return self.missing(figure.reason)
        text = number(scale * figure.value, decimals)
        if figure.interval is None:
            return Cell(text, below=label, note=self._mark(figure.reason))
        low, high = (
            number(scale * end, decimals) for end in (figure.interval.low, figure.interval.high)
        )
        return Cell(text, below=" ".join(filter(None, (f"{low}–{high}", label))))

    def _mark(self, reason: str | None) -> int:
        reason = reason or "unknown"
        if reason not in self.reasons:
            self.reasons.append(reason)
        return self.reasons.index(reason) + 1


def table(
    key: str,
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Row],
    notes: Notes,
    remark: str = "",
) -> PageTable:
    """Return the table; the first of `columns` heads the rows' headings."""
    return PageTable(
        key, caption, columns[0], tuple(columns[1:]), tuple(rows), tuple(notes.reasons), remark
    )
