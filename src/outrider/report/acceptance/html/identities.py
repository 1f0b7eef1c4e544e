"""The identities of each segment as the page shows them: what fails first, and in plain words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from outrider.acceptance.reconciliation import Identity
from outrider.report.acceptance.document import SegmentReport


@dataclass(frozen=True, slots=True)
class IdentityRow:
    """An identity, whether it holds ("yes", "no" or "unknown") and in words, and its two sides."""

    identity: Identity
    holds: str
    status: str
    sides: tuple[str, str]


@dataclass(frozen=True, slots=True)
class IdentityGroup:
    """The identities of one segment; `text` sums them up."""

    segment: str
    text: str
    fails: bool
    rows: tuple[IdentityRow, ...]


def identity_groups(segments: Sequence[SegmentReport]) -> Iterator[IdentityGroup]:
    """Yield the identities of each segment that has any."""
    for segment in segments:
        if segment.reconciliation:
            rows = [_row(identity) for identity in segment.reconciliation]
            rows.sort(key=lambda row: ("no", "unknown", "yes").index(row.holds))
            fails = rows[0].holds == "no"
            yield IdentityGroup(segment.name, _summary(rows), fails, tuple(rows))


def _row(identity: Identity) -> IdentityRow:
    if identity.holds is None:
        holds, status = "unknown", "cannot be checked"
    elif identity.holds:
        holds, status = "yes", "holds"
    else:
        gap = "unknown" if identity.gap is None else f"{identity.gap:+,.10g}".replace("-", "−")
        holds, status = "no", f"gap {gap}"
    return IdentityRow(identity, holds, status, (_plain(identity.left), _plain(identity.right)))


def _summary(rows: Sequence[IdentityRow]) -> str:
    counts = [
        (sum(row.holds == word for row in rows), text)
        for word, text in (
            ("no", "with a gap"),
            ("yes", "without"),
            ("unknown", "cannot be checked"),
        )
    ]
    return ", ".join(f"{count} {text}" for count, text in counts if count)


def _plain(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.10g}"
