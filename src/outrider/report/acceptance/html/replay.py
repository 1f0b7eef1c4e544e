"""The settings of a replay side by side, as the page shows them."""

from collections.abc import Sequence
from dataclasses import dataclass

from outrider.report.acceptance.document import AcceptanceReport
from outrider.report.acceptance.html.cells import Cell, Column, Notes, PageTable, Row, table
from outrider.report.acceptance.replay.telling import (
    BY_SEGMENT,
    TITLE,
    deployment_of,
    segment_headings,
    segment_row,
    setting_headings,
    setting_row,
)
from outrider.report.acceptance.used_terms import heading_on_one_line


@dataclass(frozen=True, slots=True)
class ReplaySection:
    """The section on a replay: `segments` is None where there is but one."""

    title: str
    settings: PageTable
    segments: PageTable | None
    deployment: str
    caveats: tuple[str, ...]


def replay_section(report: AcceptanceReport) -> ReplaySection | None:
    """Return the section, None for what was not replayed."""
    findings = report.replay
    if findings is None:
        return None
    settings = [setting_row(findings, each) for each in findings.settings]
    segments = [segment_row(findings, each) for each in findings.segments]
    return ReplaySection(
        title=TITLE,
        settings=_table("settings", TITLE, setting_headings(findings), settings),
        segments=_table("settings-by-segment", BY_SEGMENT, segment_headings(findings), segments)
        if segments
        else None,
        deployment=deployment_of(findings),
        caveats=findings.caveats,
    )


def _table(
    anchor: str, title: str, headings: Sequence[str], rows: Sequence[tuple[str, ...]]
) -> PageTable:
    columns = tuple(Column(_capital(heading_on_one_line(each))) for each in headings)
    shown = [Row(name, tuple(map(Cell, cells))) for name, *cells in rows]
    return table(anchor, title, columns, shown, Notes())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
