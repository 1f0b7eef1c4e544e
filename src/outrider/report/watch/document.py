"""What a watch says: of each window, of each alarm, and of all of it at the end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from outrider.acceptance.alarm_band import Limits, Side
from outrider.acceptance.estimate import Estimate
from outrider.acceptance.flags import Flag
from outrider.records.segment_keys import SegmentValue

State = Literal[
    "inside", "low", "high", "learning", "gathering", "too_few_steps", "idle", "no_band"
]
"""Where M of a window lies, or why that is not judged."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Windows in a row that are judged as one, as each alone has too few steps to be too low."""

    windows: int = 0
    steps: int = 0
    accepted: int = 0

    @property
    def m(self) -> float:
        """M over all of them, from 1."""
        return 1 + self.accepted / self.steps if self.steps else 1.0

    def with_window(self, steps: int, accepted: int) -> "Pool":
        """Return the pool with one more window."""
        return Pool(self.windows + 1, self.steps + steps, self.accepted + accepted)


@dataclass(frozen=True, slots=True)
class SegmentWindow:
    """One segment in one window; `m` is None without a step, `limits` without a band.

    `pool` is what is judged, this window the last of it, None where the band is not in use; while
    it gathers steps, `limits` are None.
    `alarm` is the side of the alarm that is on after this window. `learned` windows are in the band
    so far. `flags` are what the window's own histogram asks attention for.
    """

    name: str
    values: Mapping[str, SegmentValue]
    steps: int
    accepted: int
    drafted: int | None
    histogram: tuple[int, ...] | None
    m: float | None
    limits: Limits | None
    state: State
    alarm: Side | None
    learned: int
    pool: Pool | None
    flags: tuple[Flag, ...]


@dataclass(frozen=True, slots=True)
class AlarmEvent:
    """An alarm that was raised or cleared, by the last of `windows` in a row."""

    kind: Literal["raised", "cleared"]
    side: Side
    windows: int
    row: SegmentWindow


@dataclass(frozen=True, slots=True)
class WindowReport:
    """Everything about one window, in the order in which it is told.

    `nothing` says why there is no row, None where there is one. `reached` is False where the
    source did not answer.
    """

    start_s: float
    end_s: float
    notices: tuple[str, ...]
    rows: tuple[SegmentWindow, ...]
    nothing: str | None
    reached: bool
    events: tuple[AlarmEvent, ...]


@dataclass(frozen=True, slots=True)
class AlarmSpan:
    """An alarm: raised when the window ended at `since_s` (Unix time), cleared at `until_s`."""

    side: Side
    since_s: float
    until_s: float | None


@dataclass(frozen=True, slots=True)
class SegmentSummary:
    """One segment over the whole watch.

    `windows` had a step. `judged` of them had a band and enough steps, the others are `unjudged`:
    how many for each reason.
    """

    name: str
    values: Mapping[str, SegmentValue]
    windows: int
    judged: int
    unjudged: Mapping[State, int]
    steps: int
    accepted: int
    mean_acceptance_length: Estimate
    alarms: tuple[AlarmSpan, ...]


@dataclass(frozen=True, slots=True)
class WatchSummary:
    """The whole watch, from `start_s` to `end_s` (Unix time, None without a window)."""

    start_s: float | None
    end_s: float | None
    windows: int
    segments: tuple[SegmentSummary, ...]

    @property
    def alarmed(self) -> bool:
        """Whether any alarm was raised."""
        return any(segment.alarms for segment in self.segments)
