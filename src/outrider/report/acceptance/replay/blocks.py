"""The settings of a replay side by side, as blocks to read."""

from collections.abc import Iterator

from outrider.report.acceptance.blocks import (
    Block,
    Column,
    Heading,
    Item,
    Items,
    Paragraph,
    Table,
)
from outrider.report.acceptance.replay.findings import ReplayFindings
from outrider.report.acceptance.replay.telling import (
    BY_SEGMENT,
    TITLE,
    deployment_of,
    segment_headings,
    segment_row,
    setting_headings,
    setting_row,
)

_WORDS = ("setting", "segment", "best setting", "pays")


def replay_blocks(findings: ReplayFindings | None) -> Iterator[Block]:
    """Yield the comparison of the settings, what pays by segment, and how to serve the best."""
    if findings is None:
        return
    yield Heading(TITLE, 2)
    yield _table(
        setting_headings(findings),
        tuple(setting_row(findings, each) for each in findings.settings),
    )
    if findings.segments:
        yield Heading(BY_SEGMENT, 3)
        yield _table(
            segment_headings(findings),
            tuple(segment_row(findings, each) for each in findings.segments),
        )
    if line := deployment_of(findings):
        yield Paragraph(line)
    yield Items(tuple(Item("", (caveat,)) for caveat in findings.caveats), "aside")


def _table(headings: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> Table:
    return Table(tuple(Column(each, words=each in _WORDS) for each in headings), (("", rows),))
