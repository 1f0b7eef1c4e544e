"""What the page says of each segment in a line: the tiles on top, and which K it asks for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from outrider.report.acceptance.document import SegmentReport
from outrider.report.acceptance.html.cells import PageTable
from outrider.report.acceptance.html.tables import draft_length_table, segments_table

MOST_TILES = 4
_TILE_SYMBOLS = ("M", "A/D", "H_0/S", "coverage")


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure in large type; `symbol` names its definition, `below` its interval or reason."""

    label: str
    symbol: str
    text: str
    below: str


def tiles(segments: Sequence[SegmentReport]) -> Iterator[Tile]:
    """Yield the figures of a single segment, or M of each of a few."""
    if len(segments) == 1:
        yield from _tiles_of(segments[0], _TILE_SYMBOLS)
    elif len(segments) <= MOST_TILES:
        for segment in segments:
            yield from _tiles_of(segment, ("M",), label=f"M, {segment.name}")


def _tiles_of(segment: SegmentReport, symbols: Sequence[str], label: str = "") -> Iterator[Tile]:
    table = segments_table("tiles", segment.name, (segment,))
    for column, cell in zip(table.columns, table.rows[0].cells, strict=True):
        if column.defined in symbols:
            reason = table.notes[cell.note - 1] if cell.note else ""
            below = ", ".join(filter(None, (cell.below, reason)))
            unit = " %" if cell.known and "%" in column.symbol else ""
            yield Tile(label or column.heading, column.defined, f"{cell.text}{unit}", below)


@dataclass(frozen=True, slots=True)
class Choice:
    """The best K of a segment in words, with the table behind it."""

    name: str
    text: str
    table: PageTable
    notes: tuple[str, ...]


def choices(segments: Sequence[SegmentReport]) -> Iterator[Choice]:
    """Yield the best K of each segment that has one."""
    for place, segment in enumerate(segments):
        table = draft_length_table(f"draft-length-{place}", segment)
        choice = segment.draft_length
        if table is None or choice is None:
            continue
        off = " (no speculation)" if choice.best_k == 0 else ""
        text = f"K = {choice.best_k}{off} is best"
        if choice.best_k_low is not None and choice.best_k_high is not None:
            low, high = choice.best_k_low, choice.best_k_high
            text += f", 95 % interval {low}–{high}" if low != high else ", as in 95 % of resamples"
        yield Choice(segment.name, text, table, choice.notes)


def without_choice(segments: Sequence[SegmentReport], most_named: int) -> dict[str, str]:
    """Return why no K is advised, and the segments that this goes for."""
    names: dict[str, list[str]] = {}
    for segment in segments:
        if segment.draft_length is None and segment.draft_length_reason:
            names.setdefault(segment.draft_length_reason, []).append(segment.name)
    return {
        reason: ", ".join(of[:most_named])
        + (f" and {len(of) - most_named} more" if len(of) > most_named else "")
        for reason, of in names.items()
    }
