"""The tables of a report: what each arm did, segment by segment."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from outrider.advice.arm_summary import ArmSummary
from outrider.advice.comparison import SegmentComparison
from outrider.report.cells import MISSING, Footnotes, number
from outrider.report.run.document import ReportDocument

Row: TypeAlias = tuple[str, ...]

PERCENT = 100
POSITIONS_ACROSS = 9
"""The most draft positions side by side that 80 columns hold."""


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table as text: what it shows, and what the marks in its cells mean.

    `sections` has the rows of each segment under its name. A row is the arm's name and then one
    cell for each heading.
    """

    title: str
    headings: Row
    sections: tuple[tuple[str, tuple[Row, ...]], ...]
    footnotes: tuple[str, ...]


def acceptance_table(document: ReportDocument) -> ReportTable:
    """Show what the arms that speculate drafted, and how much of it was accepted."""
    notes = Footnotes()

    def rows(segment: SegmentComparison) -> Iterator[Row]:
        for arm in segment.summaries:
            if arm.histogram is not None:
                yield (
                    arm.arm,
                    number(arm.requests),
                    number(arm.verification_steps),
                    notes.value(arm.coverage, 1, scale=PERCENT),
                    number(arm.drafted),
                    number(arm.accepted),
                    notes.interval(arm.draft_acceptance_rate, 1, scale=PERCENT),
                    notes.interval(arm.mean_acceptance_length, 2),
                    notes.value(arm.immediate_failure_rate, 1, scale=PERCENT),
                    notes.value(arm.full_draft_rate, 1, scale=PERCENT),
                )

    headings = (
        *("requ-\nests", "S", "cover-\nage %", "D", "A", "A/D %", "M"),
        *("H_0/S\n%", "H_K/S\n%"),
    )
    return _table("Acceptance", document, headings, rows, notes)


def position_tables(document: ReportDocument) -> Iterator[ReportTable]:
    """Show how far into the draft acceptance reaches, as many positions at a time as fit."""
    longest = max(arm.num_speculative_tokens for arm in document.comparison.arms)
    for start in range(0, longest + 1, POSITIONS_ACROSS):
        across = range(start, min(start + POSITIONS_ACROSS, longest + 1))

        def rows(segment: SegmentComparison, across: range = across) -> Iterator[Row]:
            for arm in segment.summaries:
                if arm.histogram is not None and across.start < len(arm.histogram):
                    yield from _position_rows(arm, across)

        yield _table("Draft positions", document, ("", *map(str, across)), rows, Footnotes())


def _position_rows(arm: ArmSummary, across: range) -> Iterator[Row]:
    def row(name: str, label: str, values: Sequence[str]) -> Row:
        return (name, label, *(values[j] if j < len(values) else "" for j in across))

    survival = [_percent(position.survival) for position in arm.positions]
    naive = [_percent(position.naive_tail_ratio) for position in arm.positions]
    yield row(arm.arm, "steps H_j", [number(steps) for steps in arm.histogram or ()])
    yield row("", "at risk", ["", *(number(position.at_risk) for position in arm.positions)])
    if survival == naive:
        yield row("", "both %", ["", *survival])
    else:
        yield row("", "survival %", ["", *survival])
        yield row("", "naive %", ["", *naive])


def step_table(document: ReportDocument) -> ReportTable:
    """Show what a decode step costs, and what of it is drafting."""
    notes = Footnotes()

    def rows(segment: SegmentComparison) -> Iterator[Row]:
        paired = {pair.arm: pair for pair in segment.against_baseline}
        for arm in segment.summaries:
            pair = paired.get(arm.arm)
            yield (
                arm.arm,
                number(arm.decode_steps),
                notes.value(arm.step_ms, 2),
                notes.value(arm.draft_ms, 2) if arm.histogram else "",
                notes.value(arm.verify_ms, 2),
                notes.interval(pair.step_inflation, 2) if pair else "",
                notes.interval(pair.verification_step_inflation, 2) if pair else "",
            )

    headings = ("decode\nsteps", "step\nms", "draft\nms", "verify\nms", "ρ", "ρ verify")
    return _table("Time of a decode step", document, headings, rows, notes)


def speed_table(document: ReportDocument) -> ReportTable:
    """Show how fast each arm decodes, alone and against no speculation."""
    notes = Footnotes()

    def rows(segment: SegmentComparison) -> Iterator[Row]:
        paired = {pair.arm: pair for pair in segment.against_baseline}
        for arm in segment.summaries:
            pair = paired.get(arm.arm)
            yield (
                arm.arm,
                number(arm.output_tokens),
                notes.value(arm.tokens_per_s, 1),
                _range(arm),
                notes.value(arm.time_per_output_token_ms, 1),
                number(pair.pairs) if pair else "",
                notes.value(pair.tokens_per_decode_step, 2) if pair else "",
                notes.value(pair.step_inflation, 2) if pair else "",
                notes.interval(pair.speed_up, 2) if pair else "",
            )

    headings = (
        *("output\ntokens", "tokens\nper s", "slowest–\nfastest\nprompt", "ms per\ntoken", "pairs"),
        *("M̂", "ρ", "speed-up"),
    )
    return _table("Speed of decoding", document, headings, rows, notes)


def _percent(share: float | None) -> str:
    return number(None if share is None else PERCENT * share, 1)


def _range(arm: ArmSummary) -> str:
    slowest, fastest = arm.slowest_prompt_tokens_per_s, arm.fastest_prompt_tokens_per_s
    return MISSING if slowest is None else f"{number(slowest, 1)}–{number(fastest, 1)}"


def _table(
    title: str,
    document: ReportDocument,
    headings: Row,
    rows: Callable[[SegmentComparison], Iterable[Row]],
    notes: Footnotes,
) -> ReportTable:
    sections = tuple(
        (segment.segment, tuple(rows(segment))) for segment in document.comparison.segments
    )
    return ReportTable(title, headings, sections, notes.lines())
