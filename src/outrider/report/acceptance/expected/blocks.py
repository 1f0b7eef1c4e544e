"""What was expected beside what was measured, as blocks to read."""

from collections.abc import Iterator, Sequence

from outrider.report.acceptance.blocks import (
    Block,
    Column,
    Heading,
    Item,
    Items,
    Paragraph,
    Table,
    Tone,
)
from outrider.report.acceptance.document import AcceptanceReport, SegmentReport
from outrider.report.acceptance.expected.expectation import Cause, Expectation
from outrider.report.acceptance.expected.telling import (
    ROW_HEADINGS,
    asked_of,
    causes_title,
    held_segments,
    row,
    told_in_full,
)

TITLE = "Expected and measured"


def expected_blocks(report: AcceptanceReport) -> Iterator[Block]:
    """Yield each segment beside what was expected, and the causes of what differs."""
    held = held_segments(report)
    if not held:
        return
    yield Heading(TITLE, 2)
    yield Paragraph(f"Expected: {asked_of(held)}")
    if len(held) > 1:
        yield _table(held)
    told = told_in_full(report)
    for segment, expectation in told:
        named = f"{segment.name}: " if len(held) > 1 else ""
        tone: Tone = "plain" if expectation.outcome == "as expected" else "warning"
        yield Paragraph(f"{named}{expectation.text}.", tone)
    causes = told[0][1].causes
    if causes:
        yield Heading(causes_title(told), 3)
        yield Items(tuple(_item(cause) for cause in causes))


def _table(held: Sequence[tuple[SegmentReport, Expectation]]) -> Table:
    name, outcome, *numbers = ROW_HEADINGS
    columns = (Column(name, words=True), Column(outcome, words=True), *map(Column, numbers))
    return Table(columns, (("", tuple(row(*each) for each in held)),))


def _item(cause: Cause) -> Item:
    check = () if cause.check is None else (f"Check: {cause.check}",)
    return Item(f"{cause.name}: {cause.status}", (cause.detail, *check))
