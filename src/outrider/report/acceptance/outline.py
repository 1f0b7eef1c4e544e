"""What the report on acceptance says, in the order to read it."""

from collections.abc import Iterator, Sequence

from outrider.report.acceptance.blocks import Block, Heading, Item, Items, Paragraph, Terms
from outrider.report.acceptance.document import AcceptanceReport, SegmentReport
from outrider.report.acceptance.expected.blocks import expected_blocks
from outrider.report.acceptance.flag_items import flag_items
from outrider.report.acceptance.overview_table import overview_table
from outrider.report.acceptance.record_blocks import record_blocks
from outrider.report.acceptance.replay.blocks import replay_blocks
from outrider.report.acceptance.segment_blocks import (
    segment_blocks,
    worth_blocks,
    worth_unknown,
)
from outrider.report.acceptance.short_names import with_short_names
from outrider.report.acceptance.split_table import split_table
from outrider.report.acceptance.used_terms import used_terms

MOST_DETAILED = 3
"""Segments that are shown in detail; the others only have their row."""
_SOURCES_NAMED = 3


def outline(report: AcceptanceReport) -> Iterator[Block]:
    """Yield the blocks of the report: what decides first, what explains it after."""
    body = tuple(_body(*with_short_names(report)))
    yield from body
    terms = used_terms(report.definitions, body)
    if terms:
        yield Heading("Definitions", 2)
        yield Terms(terms)


def _body(report: AcceptanceReport, shared: str) -> Iterator[Block]:
    yield Heading(f"{title_of(report)}: {_sources(report.sources)}", 1)
    yield Paragraph(report.verdict, "warning" if report.records.verdict_withheld else "verdict")
    yield from replay_blocks(report.replay)
    yield from expected_blocks(report)
    if flags := flag_items(report):
        yield Heading("Flags", 2)
        yield Items(flags, "warning")
    if report.notes:
        yield Heading("Notes", 2)
        yield Items(tuple(Item("", (note,)) for note in report.notes))
    yield from _segments(report, shared)
    yield from _split(report)
    if report.pooled_refused is not None and len(report.segments) > 1:
        yield Heading("Pooled", 2)
        yield Paragraph(f"No pooled figure: {report.pooled_refused}.")
    yield Heading("Records", 2)
    yield from record_blocks(report.records)


def title_of(report: AcceptanceReport) -> str:
    """Return what the report is on: acceptance as it was, or would have been."""
    return "Acceptance" if report.replay is None else "Replay"


def _sources(sources: Sequence[str]) -> str:
    named = ", ".join(sources[:_SOURCES_NAMED])
    more = len(sources) - _SOURCES_NAMED
    return f"{named} and {more:,} more" if more > 0 else named


def _segments(report: AcceptanceReport, shared: str) -> Iterator[Block]:
    segments = report.segments
    if len(segments) + len(report.whole) > 1:
        yield from _side_by_side(report, shared)
    detailed = sorted(segments, key=lambda segment: -segment.figures.steps)[:MOST_DETAILED]
    if len(detailed) < len(segments):
        yield Paragraph(
            f"Details follow of the {MOST_DETAILED} segments with the most steps, of"
            f" {len(segments):,}; --format json has those of all.",
            "aside",
        )
    for segment in segments:
        if segment in detailed:
            yield from segment_blocks(segment, report.step_cost)
    if unknown := worth_unknown(detailed):
        yield Heading("What K is worth", 2)
        yield unknown


def _side_by_side(report: AcceptanceReport, shared: str) -> Iterator[Block]:
    segments = report.segments
    groups: list[tuple[str, Sequence[SegmentReport]]] = [("", segments)]
    # What the split leaves whole has its row already.
    parts = [each.figures for each in segments]
    if divided := [each for each in report.whole if each.figures not in parts]:
        groups.append(("undivided", divided))
    yield Heading("Segments", 2)
    if report.split is not None and report.split.key is not None:
        yield Paragraph(report.split.text)
    if report.pooled is not None and report.pooled not in (*segments, *report.whole):
        groups.append(("pooled", (report.pooled,)))
    if shared:
        yield Paragraph(f"All of them: {shared}.")
    yield overview_table(groups)
    for title, undivided in groups[1:]:
        for each in undivided:
            name = title if len(undivided) == 1 else f"{title}, {each.name}"
            yield from worth_blocks(each, report.step_cost, f"What K is worth, {name}")


def _split(report: AcceptanceReport) -> Iterator[Block]:
    if report.split is None:
        return
    yield Heading("Keys tried for a split", 2)
    if report.split.key is None:
        yield Paragraph(report.split.text)
    if report.split.tried:
        yield split_table(report.split)
