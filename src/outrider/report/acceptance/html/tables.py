"""The tables of the page: they carry every number, with or without the charts."""

from collections.abc import Iterator, Mapping, Sequence

from outrider.acceptance.cadence import NO_GAPS
from outrider.acceptance.figures import BandFigures, SegmentFigures
from outrider.records.segment_keys import SegmentValue
from outrider.report.acceptance.document import SegmentReport, Split
from outrider.report.acceptance.html.cells import (
    PERCENT,
    Cell,
    Column,
    Notes,
    PageTable,
    Row,
    table,
)
from outrider.report.cells import number

_SEGMENT_COLUMNS = (
    Column("Segment"),
    Column("K", "", "K"),
    Column("Mean acceptance length", "M", "M"),
    Column("M by request", "", "M by request"),
    Column("Acceptance rate", "A/D, %", "A/D"),
    Column("Accepted nothing", "H_0/S, %", "H_0/S"),
    Column("Accepted all K", "H_K/S, %", "H_K/S"),
    Column("Coverage", "%", "coverage"),
    Column("Requests", "", "scope"),
    Column("Steps", "S", "steps"),
    Column("Drafted", "D", "drafted"),
    Column("Accepted", "A", "accepted"),
    Column("Wasted", "D − A", "wasted"),
)


def segments_table(key: str, caption: str, segments: Sequence[SegmentReport]) -> PageTable:
    """Show the figures of the segments side by side, one row each."""
    notes = Notes()
    shared = dict(shared_values(segments))
    rows = [
        Row(segment.name, tuple(_segment_cells(segment, notes)), below=_telling(segment, shared))
        for segment in segments
    ]
    return table(key, caption, _SEGMENT_COLUMNS, rows, notes)


def shared_values(segments: Sequence[SegmentReport]) -> Iterator[tuple[str, SegmentValue]]:
    """Yield the keys whose value is the same in every segment, but for K, which is a column."""
    if segments:
        for key, value in segments[0].values.items():
            if key != "k" and all(each.values.get(key) == value for each in segments):
                yield key, value


def _telling(segment: SegmentReport, shared: Mapping[str, SegmentValue]) -> str:
    """Return the values that neither all segments share nor the name tells already."""
    return ", ".join(
        key_text(key, value)
        for key, value in segment.values.items()
        if key not in shared and key != "k" and value_text(value) not in segment.name
    )


def key_text(key: str, value: SegmentValue) -> str:
    """Return a key and its value, e.g. "prompt length 128–511"."""
    return f"{key.replace('_', ' ')} {value_text(value)}"


def value_text(value: SegmentValue) -> str:
    """Return the value of a key as it stands in names."""
    return "unknown" if value is None else str(value)


def _segment_cells(segment: SegmentReport, notes: Notes) -> Iterator[Cell]:
    figures = segment.figures
    steps = "estimated" if figures.steps_estimated else ""
    accepted = "estimated" if figures.accepted_estimated else ""
    nominal = "nominal" if figures.drafted_nominal else ""
    yield notes.count(figures.k, "the source does not tell K")
    yield notes.estimate(figures.mean_acceptance_length, 2, label=steps or accepted)
    yield notes.estimate(figures.mean_acceptance_length_by_request, 2, label=steps or accepted)
    yield notes.share(figures.draft_acceptance_rate, label=nominal or accepted)
    yield notes.share(figures.immediate_failure_rate)
    yield notes.share(figures.full_draft_rate)
    yield notes.share(figures.coverage)
    yield notes.count(
        figures.requests,
        f"the source does not tell how many requests its {number(figures.records)} records cover",
    )
    yield notes.count(figures.steps, "", label=steps)
    yield notes.count(figures.drafted, "the source does not tell drafted tokens", label=nominal)
    yield notes.count(figures.accepted, "", label=accepted)
    yield notes.count(
        figures.wasted, "unknown without the drafted tokens", label=nominal or accepted
    )


def positions_table(key: str, segment: SegmentReport) -> PageTable | None:
    """Show the histogram and the draft positions of a segment, None where both are unknown."""
    figures = segment.figures
    if figures.histogram is None and not figures.positions:
        return None
    notes = Notes()
    last = max((each.position for each in figures.positions), default=0)
    if figures.histogram is not None:
        last = max(last, len(figures.histogram) - 1)
    rows = [Row(str(j), tuple(_position_cells(segment, j, notes))) for j in range(last + 1)]
    tail = figures.survival_estimator == "tail"
    survival = "Survival, tail ratio" if tail else "Survival, product limit"
    columns = (
        Column("Accepted tokens", "j", "H_j"),
        Column("Steps", "H_j", "H_j"),
        Column("Share of steps", "H_j/S, %", "H_j"),
        Column(survival, "s_j, %", "survival"),
        Column("Naive ratio", "%", "naive"),
        Column("Conditional", "c_j, %", "conditional"),
        Column("At risk", "steps", "at risk"),
        Column("Marginal", "tokens", "marginal"),
    )
    remark = f"No product limit: {figures.survival_reason}" if figures.survival_reason else ""
    last_known = figures.largest_position
    reach = "" if last_known is None else f": the data speak up to position {last_known}"
    return table(key, f"Positions of {segment.name}{reach}", columns, rows, notes, remark)


def _position_cells(segment: SegmentReport, j: int, notes: Notes) -> Iterator[Cell]:
    figures = segment.figures
    if figures.histogram is None:
        yield from (notes.missing("the source tells no histogram"),) * 2
    elif j >= len(figures.histogram):
        yield from (Cell(""),) * 2
    else:
        yield Cell(number(figures.histogram[j]))
        share = figures.histogram[j] / figures.steps if figures.steps else None
        yield Cell(number(None if share is None else PERCENT * share, 1))
    position = next((each for each in figures.positions if each.position == j), None)
    if position is None:
        yield from (Cell(""),) * 5
        return
    yield notes.share(position.survival)
    yield notes.share(position.naive)
    yield notes.share(position.conditional)
    yield notes.count(position.at_risk, "the source does not tell who was at risk")
    if position.marginal is None:
        yield notes.missing(position.survival.reason)
    else:
        yield Cell(f"+{number(position.marginal, 2)}")


def bands_table(segments: Sequence[SegmentReport]) -> PageTable | None:
    """Show M by output position, a column per band; None where no segment knows it."""
    known = [segment for segment in segments if segment.figures.bands]
    starts = {
        (band.start, band.end): band_name(band) for each in known for band in each.figures.bands
    }
    bands = sorted(starts, key=lambda band: band[0])
    notes = Notes()
    rows = []
    for segment in known:
        found = {(band.start, band.end): band for band in segment.figures.bands}
        cells = tuple(_band_cell(found.get(band), notes) for band in bands)
        rows.append(Row(segment.name, cells))
    columns = [Column("Segment"), *(Column(starts[band], "", "output position") for band in bands)]
    return (
        table("bands", "M by output position, in tokens from 0", columns, rows, notes)
        if rows
        else None
    )


def cadence_table(segments: Sequence[SegmentReport]) -> PageTable | None:
    """Show how evenly the events of streams arrived; None where no segment tells of streams."""
    notes = Notes()
    rows = [
        Row(segment.name, tuple(_cadence_cells(segment.figures, notes)))
        for segment in segments
        if segment.figures.cadence is not None or segment.figures.tokens_per_chunk is not None
    ]
    columns = (
        Column("Segment"),
        Column("Per event", "tokens", "per chunk"),
        Column("Gaps", "", "mean gap"),
        Column("Mean gap", "ms", "mean gap"),
        Column("Gap CV", "", "gap CV"),
        Column("Longest gap", "ms", "longest gap"),
    )
    return table("cadence", "Cadence of the streams", columns, rows, notes) if rows else None


def _cadence_cells(figures: SegmentFigures, notes: Notes) -> Iterator[Cell]:
    per_event, cadence = figures.tokens_per_chunk, figures.cadence
    if per_event is None:
        yield notes.missing("the source does not tell the tokens and the events of its answers")
    else:
        yield Cell(number(per_event, 2))
    if cadence is None:
        yield from (notes.missing(NO_GAPS),) * 4
        return
    yield Cell(number(cadence.gaps))
    yield notes.estimate(cadence.mean_gap_ms, 1)
    yield notes.estimate(cadence.gap_cv, 2)
    yield Cell(number(cadence.longest_gap_ms, 1))


def band_name(band: BandFigures) -> str:
    """Return the band's tokens, the last included."""
    return f"{band.start:,} and on" if band.end is None else f"{band.start:,}–{band.end - 1:,}"


def _band_cell(band: BandFigures | None, notes: Notes) -> Cell:
    if band is None:
        return notes.missing("no step began there")
    cell = notes.estimate(band.mean_acceptance_length, 2)
    below = " ".join(filter(None, (cell.below, f"({number(band.steps)} steps)")))
    return Cell(cell.text, below=below, note=cell.note)


def draft_length_table(key: str, segment: SegmentReport) -> PageTable | None:
    """Show what each K is worth in a segment, None where nothing is claimed."""
    choice = segment.draft_length
    if choice is None:
        return None
    notes = Notes()
    unit = ("plain steps", "tokens per plain step") if choice.relative else ("ms", "tokens/s")
    columns = (
        Column("K", "", "K"),
        Column("Tokens per step", "", "best K"),
        Column("Step cost", unit[0], "best K"),
        Column("Speed", unit[1], "best K"),
        Column("Regret", "%", "regret"),
    )
    rows = [
        Row(
            str(option.k),
            (
                Cell(number(option.tokens_per_step, 2)),
                Cell(number(option.step_cost, 2)),
                notes.estimate(option.speed, 2 if choice.relative else 1),
                Cell(number(PERCENT * option.regret, 1)),
            ),
            below=_option_label(segment, option.k),
            best=option.k == choice.best_k,
        )
        for option in choice.options
    ]
    return table(key, f"What K is worth in {segment.name}", columns, rows, notes)


def _option_label(segment: SegmentReport, k: int) -> str:
    choice = segment.draft_length
    assert choice is not None
    labels = []
    if k == choice.best_k:
        labels.append("best")
    if k == 0:
        labels.append("no speculation")
    elif choice.estimated and k != segment.figures.k:
        labels.append("estimated")
    return ", ".join(labels)


def split_table(split: Split) -> PageTable | None:
    """Show how much each key that was tried explains of the variation of M."""
    notes = Notes()
    rows = [
        Row(
            each.key.replace("_", " "),
            (
                Cell(number(each.groups)),
                Cell(number(PERCENT * each.explained, 1)),
                Cell("< 0.001" if each.p_value < 0.001 else number(each.p_value, 3)),  # noqa: PLR2004
            ),
            best=each.key == split.key,
        )
        for each in split.tried
    ]
    columns = (
        Column("Key"),
        Column("Values"),
        Column("Explained", "% of the variation of M"),
        Column("p", "F test"),
    )
    return table("split", "Keys that were tried", columns, rows, notes) if rows else None
