"""Which histograms may be added, and their sum."""

from collections.abc import Iterable

from outrider.acceptance.histogram import AcceptanceHistogram


class IncompatibleSegments(ValueError):
    """Histograms of different K, whose sum would mean nothing."""


def pool(histograms: Iterable[AcceptanceHistogram]) -> AcceptanceHistogram:
    """Add histograms of one K and one draft-length policy, which weights each by its steps.

    D is unknown in the sum when it is unknown in any part. A histogram does not show its
    draft-length policy, so keeping different policies apart is the caller's part. Raises
    IncompatibleSegments for different K, ValueError for no histogram at all.
    """
    parts = tuple(histograms)
    if not parts:
        raise ValueError("no histogram to pool; expected at least one")
    ks = sorted({part.k for part in parts})
    if len(ks) > 1:
        raise IncompatibleSegments(
            f"histograms of K = {', '.join(map(str, ks))} cannot be pooled; expected one K, since"
            " a larger K offers positions that a smaller one never tries; report each K by itself"
        )
    known = [part.drafted for part in parts if part.drafted is not None]
    return AcceptanceHistogram(
        counts=tuple(sum(column) for column in zip(*(p.counts for p in parts), strict=True)),
        drafted=sum(known) if len(known) == len(parts) else None,
    )
