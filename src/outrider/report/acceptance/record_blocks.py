"""What became of everything that was read."""

from collections.abc import Iterator

from outrider.report.acceptance.blocks import Block, Column, Paragraph, Table
from outrider.report.acceptance.document import BadRecordEntry, RecordCounts
from outrider.report.acceptance.figure_cells import percent
from outrider.report.cells import number

MOST_LISTED = 20


def record_blocks(records: RecordCounts) -> Iterator[Block]:
    """Yield how many records were used, and why the others were not."""
    without = sum(records.no_metrics.values())
    share = f" ({percent(records.bad_count / records.read)} %)" if records.bad_count else ""
    yield Paragraph(
        f"{records.read:,} read: {records.used:,} used, {without:,} without metrics,"
        f" {records.bad_count:,} bad{share}."
    )
    if records.no_metrics:
        rows = tuple((number(count), reason) for reason, count in records.no_metrics.items())
        yield Table((Column("records"), Column("why they tell nothing", words=True)), (("", rows),))
    if listed := records.bad[:MOST_LISTED]:
        bad = tuple((_place(entry), entry.reason) for entry in listed)
        yield Table((Column("bad record", words=True), Column("why", words=True)), (("", bad),))
    if records.bad_count > len(listed):
        yield Paragraph(f"and {records.bad_count - len(listed):,} more bad records", "aside")


def _place(entry: BadRecordEntry) -> str:
    return entry.source if entry.line is None else f"{entry.source}:{entry.line}"
