"""A watch as JSON lines: one object for each segment of a window, alarm, notice, and the end."""

import json
from datetime import UTC, datetime
from typing import Any

from outrider.acceptance.alarm_band import Limits
from outrider.report.watch.causes import CHECKS
from outrider.report.watch.document import (
    AlarmEvent,
    Pool,
    SegmentSummary,
    SegmentWindow,
    WatchSummary,
    WindowReport,
)

SCHEMA = "outrider.watch/1"
"""The number rises when a field changes its meaning or goes; new fields leave it."""


def window_lines(report: WindowReport) -> list[str]:
    """Return the lines of one window; without any segment it is one whose `segment` is null."""
    span = {"start": _time(report.start_s), "end": _time(report.end_s)}
    notices = ({"text": notice} for notice in report.notices)
    rows = [_row(row) for row in report.rows] or [_NO_ROW]
    return [
        *(_line("notice", {"at": span["end"], **notice}) for notice in notices),
        *(_line("window", {**span, **row, "reason": report.nothing}) for row in rows),
        *(_line("alarm", {"at": span["end"], **_event(event)}) for event in report.events),
    ]


def summary_line(summary: WatchSummary) -> str:
    """Return the last line."""
    return _line(
        "summary",
        {
            "start": _time(summary.start_s),
            "end": _time(summary.end_s),
            "windows": summary.windows,
            "alarmed": summary.alarmed,
            "segments": [_segment(segment) for segment in summary.segments],
        },
    )


_NO_ROW: dict[str, Any] = {
    "name": None,
    "segment": None,
    "steps": None,
    "accepted": None,
    "drafted": None,
    "histogram": None,
    "mean_acceptance_length": None,
    "low": None,
    "high": None,
    "state": "idle",
    "pool": None,
    "alarm": None,
    "flags": [],
}


def _row(row: SegmentWindow) -> dict[str, Any]:
    return {
        "name": row.name,
        "segment": dict(row.values),
        "steps": row.steps,
        "accepted": row.accepted,
        "drafted": row.drafted,
        "histogram": None if row.histogram is None else list(row.histogram),
        "mean_acceptance_length": row.m,
        **_limits(row.limits),
        "state": row.state,
        "pool": _pool(row.pool),
        "alarm": row.alarm,
        "flags": [flag.code for flag in row.flags],
    }


def _event(event: AlarmEvent) -> dict[str, Any]:
    return {
        "event": event.kind,
        "side": event.side,
        "windows": event.windows,
        "name": event.row.name,
        "segment": dict(event.row.values),
        "mean_acceptance_length": None if event.row.pool is None else event.row.pool.m,
        **_limits(event.row.limits),
        "check": CHECKS[event.side] if event.kind == "raised" else None,
    }


def _segment(segment: SegmentSummary) -> dict[str, Any]:
    figure = segment.mean_acceptance_length
    interval = figure.interval
    return {
        "name": segment.name,
        "segment": dict(segment.values),
        "windows": segment.windows,
        "judged": segment.judged,
        "unjudged": dict(segment.unjudged),
        "steps": segment.steps,
        "accepted": segment.accepted,
        "mean_acceptance_length": figure.value,
        "mean_acceptance_length_ci": None if interval is None else [interval.low, interval.high],
        "mean_acceptance_length_reason": figure.reason,
        "alarms": [
            {"side": alarm.side, "since": _time(alarm.since_s), "until": _time(alarm.until_s)}
            for alarm in segment.alarms
        ],
    }


def _pool(pool: Pool | None) -> dict[str, Any] | None:
    if pool is None:
        return None
    told = {"windows": pool.windows, "steps": pool.steps}
    return {**told, "accepted": pool.accepted, "mean_acceptance_length": pool.m}


def _limits(limits: Limits | None) -> dict[str, float | None]:
    if limits is None:
        return {"low": None, "high": None}
    return {"low": limits.low, "high": limits.high}


def _time(at_s: float | None) -> str | None:
    return (
        None if at_s is None else datetime.fromtimestamp(at_s, UTC).isoformat("T", "milliseconds")
    )


def _line(kind: str, content: dict[str, Any]) -> str:
    return json.dumps(
        {"schema": SCHEMA, "type": kind, **content}, ensure_ascii=False, allow_nan=False
    )
