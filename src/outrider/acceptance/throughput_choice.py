"""Which K to serve each segment with, from the throughput measured at every K."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

_TIE = 1e-9
"""Speeds and regrets that differ by no more than this share are equal."""


@dataclass(frozen=True, slots=True)
class SegmentThroughput:
    """One segment: its fastest K, and what each other K gives away.

    `regret` is by K the share of the fastest's tokens/s that is lost, 0 to 1. `speed_up` is the
    fastest over K = 0, None where that was not measured: then nothing can be said of a gain.
    """

    segment: str
    best_k: int
    regret: Mapping[int, float]
    speed_up: float | None


@dataclass(frozen=True, slots=True)
class SingleDraftLength:
    """One K for all segments: its regret over them, and where it is slower than no speculation.

    `worse_than_off` is None where a segment lacks K = 0.
    """

    k: int
    mean_regret: float
    largest_regret: float
    worse_than_off: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ThroughputChoice:
    """The best K of each segment, and the best single K for all of them.

    `singles` are all K that every segment measured. `global_k` has the least mean regret among
    those that are nowhere worse than off, or, without a baseline, among all; None without any.
    """

    segments: tuple[SegmentThroughput, ...]
    singles: tuple[SingleDraftLength, ...]
    global_k: int | None
    has_baseline: bool

    @property
    def never_worse_than_off(self) -> bool | None:
        """Whether `global_k` is known to be nowhere slower than no speculation."""
        return True if self.has_baseline else None


def choose_by_throughput(rows: Mapping[str, Mapping[int, float]]) -> ThroughputChoice:
    """Return the best K by segment and for all, from tokens/s by segment and K (0: off).

    Ties go to the smaller K. Raises ValueError for no segments, a segment without a K, or a speed
    that is not above 0.
    """
    if not rows:
        raise ValueError("no segment has a measured throughput; expected at least one")
    segments = tuple(_segment(name, by_k) for name, by_k in rows.items())
    shared = sorted(set.intersection(*(set(by_k) for by_k in rows.values())))
    singles = tuple(_single(k, segments, rows) for k in shared)
    has_baseline = 0 in shared
    safe = [single for single in singles if not single.worse_than_off]
    return ThroughputChoice(
        segments, singles, _least_regret(safe) if safe else None, has_baseline=has_baseline
    )


def _segment(name: str, by_k: Mapping[int, float]) -> SegmentThroughput:
    if not by_k:
        raise ValueError(f"segment {name!r} has no measured K; expected at least one")
    for k, speed in by_k.items():
        if not (k >= 0 and 0 < speed < float("inf")):
            raise ValueError(
                f"segment {name!r} has {speed:g} tokens/s at K = {k};"
                " expected K from 0 and a speed above 0"
            )
    fastest = max(by_k.values())
    best_k = min(k for k, speed in by_k.items() if speed >= fastest * (1 - _TIE))
    return SegmentThroughput(
        segment=name,
        best_k=best_k,
        regret={k: 1 - by_k[k] / fastest for k in sorted(by_k)},
        speed_up=by_k[best_k] / by_k[0] if 0 in by_k else None,
    )


def _single(
    k: int, segments: Iterable[SegmentThroughput], rows: Mapping[str, Mapping[int, float]]
) -> SingleDraftLength:
    regrets = [segment.regret[k] for segment in segments]
    baseline = all(0 in by_k for by_k in rows.values())
    slower = tuple(
        name for name, by_k in rows.items() if baseline and by_k[k] < by_k[0] * (1 - _TIE)
    )
    return SingleDraftLength(k, fmean(regrets), max(regrets), slower if baseline else None)


def _least_regret(singles: Iterable[SingleDraftLength]) -> int:
    return min(singles, key=lambda single: (round(single.mean_regret, 9), single.k)).k
