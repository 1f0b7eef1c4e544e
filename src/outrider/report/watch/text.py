"""A watch for people to read: a line for each segment of a window, and one for each event."""

from collections.abc import Iterator
from datetime import datetime, tzinfo

from rich.console import Console
from rich.text import Text

from outrider.report.cells import MISSING, counted, interval_text, number
from outrider.report.watch.causes import CHECKS
from outrider.report.watch.document import (
    AlarmEvent,
    AlarmSpan,
    SegmentSummary,
    SegmentWindow,
    State,
    WatchSummary,
    WindowReport,
)
from outrider.report.watch.gauge import WIDTH, gauge
from outrider.report.watch.segment import band_text

_BAND_WIDTH = 10
_BAD = "bold red"
_STYLES = {"low": "yellow", "high": "yellow", "inside": "", "no_band": ""}
_DAY_S = 86_400


class WatchText:
    """Writes the lines of a watch as they come.

    `learn`, `min_steps` and `confirm` are told beside what is short of them; `zone` is that of the
    times, None for the machine's.
    """

    def __init__(
        self,
        console: Console,
        *,
        learn: int,
        min_steps: int,
        confirm: int,
        zone: tzinfo | None = None,
    ) -> None:
        self._console = console
        self._learn, self._min_steps, self._confirm = learn, min_steps, confirm
        self._zone = zone
        self._width = 0

    def begin(self, source: str, every_s: float, band: str) -> None:
        """Say what is watched: the source, and what M is held against."""
        told = "standard input" if source == "-" else source
        self._line(
            f"Watching {told}, a window every {every_s:g} s; {band}; alarm after"
            f" {counted(self._confirm, 'window')} in a row outside",
            "bold",
        )

    def write(self, report: WindowReport) -> None:
        """Write what one window told."""
        time = self._time(report.end_s)
        if report.rows:
            self._head([row.name for row in report.rows])
        for row in report.rows:
            style = _BAD if row.alarm else _STYLES.get(row.state, "dim")
            self._line(f"{time}  {self._row(row)}", style)
        if report.nothing and report.reached:
            self._line(f"{time}  no steps: {report.nothing}", "dim")
        for notice in report.notices:
            self._line(f"{time}  {notice}", "cyan")
        for event in report.events:
            raised = event.kind == "raised"
            self._line(f"{time}  {_event(event)}", _BAD if raised else "green")

    def end(self, summary: WatchSummary) -> None:
        """Write what the whole watch came to."""
        if summary.start_s is None or summary.end_s is None:
            self._line("Watched no window.", "")
            return
        self._line("", "")
        seconds = summary.end_s - summary.start_s
        self._line(f"Watched {counted(summary.windows, 'window')} in {_duration(seconds)}.", "bold")
        if not summary.segments:
            self._line("  no step had a draft", "")
        width = max((len(each.name) for each in summary.segments), default=0)
        for segment in summary.segments:
            self._line(f"  {segment.name:<{width}}  {self._summed(segment)}", "")
            for alarm in segment.alarms:
                self._line(f"  {'':<{width}}  {self._span(alarm)}", _BAD)

    def _head(self, names: list[str]) -> None:
        width = max(self._width, len("segment"), *map(len, names))
        if width == self._width:
            return
        self._width = width
        title = (
            f"{'time':<8}  {'segment':<{width}}  {'steps':>7}  {'M':>5}  {'band':<{_BAND_WIDTH}}"
        )
        self._line(f"{title}  {'':<{WIDTH}}  state", "bold")

    def _row(self, row: SegmentWindow) -> str:
        k = row.values.get("k")
        top = k + 1.0 if isinstance(k, int) else None
        band = MISSING if row.limits is None else band_text(row.limits)
        drawn = "" if row.limits is None or row.pool is None else gauge(row.pool.m, row.limits, top)
        return (
            f"{row.name:<{self._width}}  {row.steps:>7,}  {number(row.m, 2):>5}"
            f"  {band:<{_BAND_WIDTH}}  {drawn:<{WIDTH}}  {'; '.join(self._states(row))}"
        )

    def _states(self, row: SegmentWindow) -> Iterator[str]:
        if row.state == "learning":
            yield f"learning {row.learned} of {self._learn}"
        elif row.state == "gathering" and row.pool is not None:
            yield f"gathering, {counted(row.pool.steps, 'step')} so far"
        elif row.state == "inside":
            yield "ok"
        elif row.state == row.alarm:
            yield f"ALARM {row.alarm}"
        else:
            yield row.state.replace("_", " ")
        if row.limits is not None and row.pool is not None and row.pool.windows > 1:
            yield f"M = {number(row.pool.m, 2)} over {counted(row.pool.windows, 'window')}"
        if row.alarm not in {None, row.state}:
            yield f"ALARM {row.alarm} still on"
        for flag in row.flags:
            yield flag.code.replace("_", " ")

    def _summed(self, segment: SegmentSummary) -> str:
        told = f"M = {interval_text(segment.mean_acceptance_length, 2)}"
        why_not = ", ".join(self._why_not(*each) for each in segment.unjudged.items())
        judged = counted(len(segment.alarms), "alarm") if segment.judged else why_not or "no steps"
        return (
            f"{told} over {counted(segment.steps, 'step')} in"
            f" {counted(segment.windows, 'window')}, {number(segment.judged)} judged: {judged}"
        )

    def _why_not(self, state: State, windows: int) -> str:
        match state:
            case "learning":
                return f"{windows:,} of the {self._learn} to learn from"
            case "too_few_steps":
                return (
                    f"{windows:,} of fewer than {counted(self._min_steps, 'step')}"
                    " (a longer --every or a lower --min-steps would do)"
                )
            case "gathering":
                return f"{windows:,} gathered, too few steps for a band yet"
            case _:
                return f"{windows:,} without a band"

    def _line(self, text: str, style: str) -> None:
        self._console.print(
            Text(text.rstrip(), style=style), soft_wrap=True, highlight=False, markup=False
        )

    def _time(self, at_s: float) -> str:
        return f"{datetime.fromtimestamp(at_s, self._zone):%H:%M:%S}"

    def _date(self, at_s: float) -> str:
        return f"{datetime.fromtimestamp(at_s, self._zone):%Y-%m-%d %H:%M:%S}"

    def _span(self, alarm: AlarmSpan) -> str:
        until = "still on" if alarm.until_s is None else f"cleared {self._date(alarm.until_s)}"
        return f"alarm {alarm.side}: raised {self._date(alarm.since_s)}, {until}"


def _event(event: AlarmEvent) -> str:
    row = event.row
    assert row.limits is not None
    assert row.pool is not None
    where = f"{row.name}: M = {number(row.pool.m, 2)}"
    pooled = row.pool.windows > 1
    if pooled:
        where += f" over {counted(row.pool.windows, 'window')}"
    agreed = f"{counted(event.windows, 'time' if pooled else 'window')} in a row"
    if event.kind == "cleared":
        return f"cleared {event.side}: {where}, {agreed} no longer {event.side}"
    limit = row.limits.low if event.side == "low" else row.limits.high
    beyond = "below" if event.side == "low" else "above"
    parts = [
        f"ALARM {event.side}: {where}, {beyond} {number(limit, 2)}, {agreed}.",
        *(f"{flag.detail[0].upper()}{flag.detail[1:]}." for flag in row.flags),
        f"Check: {CHECKS[event.side]}",
    ]
    return " ".join(parts)


def _duration(seconds: float) -> str:
    days, rest = divmod(round(seconds), _DAY_S)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"), (rest, "s"))
    told = [f"{value} {unit}" for value, unit in parts if value]
    return " ".join(told[:2]) or f"{seconds:.1f} s"
