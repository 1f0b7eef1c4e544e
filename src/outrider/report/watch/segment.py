"""One segment under watch: its band, its alarm, and all that it did."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from outrider.acceptance.alarm import Alarm
from outrider.acceptance.alarm_band import Band, ChartBand, Limits, learned_band
from outrider.acceptance.estimate import estimate
from outrider.acceptance.figures import segment_figures
from outrider.acceptance.flags import Flag, find_flags
from outrider.acceptance.reach import histogram_of
from outrider.acceptance.segment_estimates import FEWEST_RECORDS, NO_STEP
from outrider.acceptance.totals import Totals
from outrider.records.segment_keys import SegmentValue
from outrider.report.watch.document import (
    AlarmEvent,
    AlarmSpan,
    Pool,
    SegmentSummary,
    SegmentWindow,
    State,
)

_TOLD = frozenset(("broken_drafter", "corrupted_output", "all_or_nothing", "suspiciously_perfect"))
"""The flags that a window can show; the others are for a report."""
MOST_POOLED = 30
"""Windows in a row that are judged as one; it takes that long to notice anything."""


class WatchedSegment:
    """Judges the windows of a segment in their order.

    `band` is what M is held against; None learns it from the first `learn` windows with at least
    `min_steps` steps, and text says why there is none.
    """

    def __init__(
        self,
        values: Mapping[str, SegmentValue],
        band: Band | str | None,
        *,
        learn: int,
        min_steps: int,
        confirm: int,
    ) -> None:
        self.values = values
        self.band = band
        self._learn, self._min_steps, self._confirm = learn, min_steps, confirm
        self._alarm = Alarm()
        self._pool = Pool()
        self._alarms: list[AlarmSpan] = []
        self._learned: list[Totals] = []
        self._windows = self._judged = 0
        self._not_judged: Counter[State] = Counter()
        k = values["k"]
        self._k = k if isinstance(k, int) else None
        self._totals = Totals.empty(self._k or 0)

    def see(
        self, totals: Totals | None, end_s: float, name: str
    ) -> tuple[SegmentWindow, AlarmEvent | None, str | None]:
        """Judge a window, None without a record: its row, an alarm, and a notice."""
        totals = totals or Totals.empty(self._k or 0)
        steps, accepted = totals.count("steps"), totals.count("accepted")
        m = 1 + accepted / steps if steps else None
        self._totals = self._totals.merged(totals)
        self._windows += steps > 0
        state, told = self._unjudged(steps), None
        limits = pool = None
        was = self._alarm
        if state is not None and state != "idle":
            self._not_judged[state] += 1
        if state == "learning":
            told = self._take_in(totals)
        elif state is None:
            pool = self._pool.with_window(steps, accepted)
            limits = self._limits(pool)
            state = "gathering" if limits is None else self._judge(pool, limits)
        row = SegmentWindow(
            name=name,
            values=self.values,
            steps=steps,
            accepted=accepted,
            drafted=None if totals.count("drafted_unknown") else totals.count("drafted"),
            histogram=histogram_of(totals) if steps else None,
            m=m,
            limits=limits,
            state=state,
            alarm=self._alarm.on,
            learned=len(self._learned),
            pool=pool,
            flags=_flags(totals, self.values) if steps >= self._min_steps else (),
        )
        return row, self._event(was, row, end_s), told

    def summary(self, name: str) -> SegmentSummary:
        """Return what the segment did over all windows."""
        totals = self._totals
        columns = totals.columns
        unit = "requests" if self.values.get("scope") == "request" else "intervals"
        unjudged = dict(self._not_judged)
        if self._pool.windows:
            unjudged["gathering"] = self._pool.windows
        figures = estimate(
            totals.rows[:, [columns["accepted"], columns["steps"]]],
            lambda sums: {"m": 1 + sums[..., 0] / sums[..., 1]},
            {"m": NO_STEP},
            rng=np.random.default_rng(0),
            unit=unit,
            fewest=FEWEST_RECORDS,
        )
        return SegmentSummary(
            name=name,
            values=self.values,
            windows=self._windows,
            judged=self._judged,
            unjudged=unjudged,
            steps=totals.count("steps"),
            accepted=totals.count("accepted"),
            mean_acceptance_length=figures["m"],
            alarms=tuple(self._alarms),
        )

    def _unjudged(self, steps: int) -> State | None:
        if not steps:
            return "idle"
        if steps < self._min_steps:
            return "too_few_steps"
        if self.band is None:
            return "learning"
        return "no_band" if isinstance(self.band, str) else None

    def _limits(self, pool: Pool) -> Limits | None:
        """Return the limits of what was gathered, None where more is to come.

        What is too high is so at once.
        """
        assert self.band is not None
        assert not isinstance(self.band, str)
        limits = self.band.limits(pool.steps)
        enough = pool.steps >= self.band.fewest_steps or pool.windows >= MOST_POOLED
        self._pool = Pool() if enough or limits.side(pool.m) == "high" else pool
        return None if self._pool.windows else limits

    def _judge(self, pool: Pool, limits: Limits) -> State:
        side = limits.side(pool.m)
        self._judged += pool.windows
        self._alarm = self._alarm.after(side, self._confirm)
        return side or "inside"

    def _take_in(self, totals: Totals) -> str | None:
        """Learn from one more window; once there are enough, say what was learned."""
        self._learned.append(totals)
        if len(self._learned) < self._learn:
            return None
        merged = self._learned[0]
        for each in self._learned[1:]:
            merged = merged.merged(each)
        steps = [each.count("steps") for each in self._learned]
        band = learned_band(
            steps,
            [each.count("accepted") for each in self._learned],
            step_variance=_step_variance(histogram_of(merged)),
            k=self._k,
        )
        self.band = band
        return _described(band, sorted(steps)[len(steps) // 2], _flags(merged, self.values))

    def _event(self, was: Alarm, row: SegmentWindow, end_s: float) -> AlarmEvent | None:
        now = self._alarm
        if now.on == was.on:
            return None
        if was.on is not None:
            self._alarms[-1] = replace(self._alarms[-1], until_s=end_s)
        if now.on is None:
            assert was.on is not None
            return AlarmEvent("cleared", was.on, now.run, row)
        self._alarms.append(AlarmSpan(now.on, end_s, None))
        return AlarmEvent("raised", now.on, now.run, row)


def band_text(limits: Limits) -> str:
    """Return the limits as a range, or the one that there is.

    >>> [band_text(Limits(low, high)) for low, high in ((1.3, 2), (1.3, None), (None, None))]
    ['1.30–2.00', '≥ 1.30', 'any']
    """
    if limits.low is not None and limits.high is not None:
        return f"{limits.low:.2f}–{limits.high:.2f}"
    if limits.low is not None:
        return f"≥ {limits.low:.2f}"
    return "any" if limits.high is None else f"≤ {limits.high:.2f}"


def _described(band: ChartBand, steps: int, flags: tuple[Flag, ...]) -> str:
    judged = max(steps, min(band.fewest_steps, MOST_POOLED * steps))
    limits = band.limits(judged)
    parts = [f"learned M = {band.centre:.2f}, in a window of {judged:,} steps {band_text(limits)}"]
    if judged > steps:
        parts.append("so many are gathered from windows in a row and judged as one")
    if band.dispersion is not None:
        parts.append(f"windows vary {band.dispersion:.1f} times as much as independent steps would")
    if limits.low is None:
        parts.append("no M of so small a window is too low: a longer --every would tell")
    parts.extend(f"yet in what was learned: {flag.detail}" for flag in flags)
    return "; ".join(parts)


def _step_variance(histogram: tuple[int, ...] | None) -> float | None:
    if histogram is None or not any(histogram):
        return None
    lengths = np.arange(len(histogram))
    mean = float(np.average(lengths, weights=histogram))
    return float(np.average((lengths - mean) ** 2, weights=histogram))


def _flags(totals: Totals, values: Mapping[str, SegmentValue]) -> tuple[Flag, ...]:
    # Of one draw: the flags of interest need no interval, and there is a window every few seconds.
    figures = segment_figures(totals, rng=np.random.default_rng(0), draws=1)
    tags = {name: str(value) for name, value in values.items() if value is not None}
    return tuple(flag for flag in find_flags(figures, totals, tags=tags) if flag.code in _TOLD)
