"""The flags of all segments, each finding once however many segments share it."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from outrider.acceptance.flags import Flag
from outrider.report.acceptance.blocks import Item
from outrider.report.acceptance.document import AcceptanceReport, SegmentReport

MOST_SHOWN = 3
"""Segments whose evidence of one finding is shown; the others are named only."""
_MOST_NAMED = 6

_Raised: TypeAlias = tuple[SegmentReport, Flag]


def flag_items(report: AcceptanceReport) -> tuple[Item, ...]:
    """Return one item per kind of finding, the most serious first.

    The records as a whole are asked only for what their parts do not show already.
    """
    found: dict[str, list[_Raised]] = {}
    for segment in report.segments:
        _add(found, segment)
    of_parts = set(found)
    for segment in report.whole:
        _add(found, segment, without=of_parts)
    several = len(report.segments) > 1
    return tuple(
        Item(code.replace("_", " "), tuple(_lines(found[code], several=several)))
        for code in _gravest_first(found)
    )


def _add(
    found: dict[str, list[_Raised]],
    segment: SegmentReport,
    without: AbstractSet[str] = frozenset(),
) -> None:
    for flag in segment.flags:
        if flag.code not in without:
            found.setdefault(flag.code, []).append((segment, flag))


def _gravest_first(found: Mapping[str, Sequence[_Raised]]) -> Iterator[str]:
    """Yield the codes in the one order that those of every segment are in."""
    orders = [[flag.code for flag in each.flags] for raised in found.values() for each, _ in raised]
    left = list(found)
    while left:
        later = {code for order in orders for code in [c for c in order if c in left][1:]}
        # Were two segments to disagree, the one that was found first would do.
        gravest = next((code for code in left if code not in later), left[0])
        left.remove(gravest)
        yield gravest


def _lines(flags: list[_Raised], *, several: bool) -> Iterator[str]:
    largest = sorted(flags, key=lambda pair: -pair[0].figures.steps)
    for segment, flag in largest[:MOST_SHOWN]:
        yield f"{segment.name}: {flag.detail}" if several else flag.detail
    if rest := largest[MOST_SHOWN:]:
        names = ", ".join(segment.name for segment, _ in rest[:_MOST_NAMED])
        more = len(rest) - _MOST_NAMED
        yield f"also {names}" + (f" and {more:,} more" if more > 0 else "")
    for check in dict.fromkeys(flag.check for _, flag in largest[:MOST_SHOWN]):
        yield f"Check: {check}"
