"""What was expected beside what was measured, as the page shows it."""

from collections.abc import Sequence
from dataclasses import dataclass

from outrider.report.acceptance.document import AcceptanceReport
from outrider.report.acceptance.expected.expectation import Cause
from outrider.report.acceptance.expected.telling import (
    ROW_HEADINGS,
    Held,
    asked_of,
    causes_title,
    held_segments,
    row,
    told_in_full,
)
from outrider.report.acceptance.html.cells import Cell, Column, Notes, PageTable, Row, table

STATUS_CLASSES = {"differs": "no", "same": "yes", "ruled out": "yes", "not told": "unknown"}


@dataclass(frozen=True, slots=True)
class CauseRow:
    """A cause, and the class that colours its status."""

    cause: Cause
    status_class: str


@dataclass(frozen=True, slots=True)
class ExpectedSection:
    """The section on what was expected.

    `sentences` are (segment, text), the first of the segment whose `causes` are gone through.
    """

    asked: str
    table: PageTable
    sentences: tuple[tuple[str, str], ...]
    title: str
    causes: tuple[CauseRow, ...]


def expected_section(report: AcceptanceReport) -> ExpectedSection | None:
    """Return the section, None where nothing was expected."""
    held = held_segments(report)
    if not held:
        return None
    told = told_in_full(report)
    return ExpectedSection(
        asked=asked_of(held),
        table=_table(held),
        sentences=tuple(
            (segment.name if len(held) > 1 else "", expectation.text)
            for segment, expectation in told
        ),
        title=causes_title(told),
        causes=tuple(CauseRow(cause, STATUS_CLASSES[cause.status]) for cause in told[0][1].causes),
    )


def _table(held: Sequence[Held]) -> PageTable:
    rows = [
        Row(name, tuple(map(Cell, cells)))
        for name, *cells in (row(segment, expectation) for segment, expectation in held)
    ]
    columns = tuple(Column(_heading(each)) for each in ROW_HEADINGS)
    return table("expected", "Expected and measured", columns, rows, Notes())


def _heading(text: str) -> str:
    """Begin with a capital and leave the symbols as they are."""
    return text[:1].upper() + text[1:]
