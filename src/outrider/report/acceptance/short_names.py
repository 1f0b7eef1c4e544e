"""Names of segments without what is the same in all of them."""

from collections.abc import Iterable
from dataclasses import replace

from outrider.report.acceptance.document import AcceptanceReport, SegmentReport

_SEPARATOR = ", "
EVERYTHING = "all"


def with_short_names(report: AcceptanceReport) -> tuple[AcceptanceReport, str]:
    """Return the report with the values that all names share taken out, and those values."""
    shown = (*report.segments, *report.whole)
    shared = shared_parts(each.name for each in shown)

    def short(segment: SegmentReport) -> SegmentReport:
        parts = [part for part in segment.name.split(_SEPARATOR) if part not in shared]
        return replace(segment, name=_SEPARATOR.join(parts) or EVERYTHING)

    renamed = replace(
        report,
        segments=tuple(map(short, report.segments)),
        whole=tuple(map(short, report.whole)),
        pooled=None if report.pooled is None else short(report.pooled),
    )
    return renamed, _SEPARATOR.join(shared)


def shared_parts(names: Iterable[str]) -> tuple[str, ...]:
    """Return the parts that several names share, none where there is but one name.

    >>> shared_parts(["kind chat, K = 4", "kind copy, K = 4", "K = 4"])
    ('K = 4',)
    """
    several = [name.split(_SEPARATOR) for name in dict.fromkeys(names)]
    if len(several) < 2:  # noqa: PLR2004
        return ()
    first, *others = several
    return tuple(part for part in first if all(part in parts for parts in others))
