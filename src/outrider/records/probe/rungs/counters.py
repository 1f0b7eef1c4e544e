"""What the rungs that are read from /metrics have in common."""

from collections.abc import Sequence

import httpx2

from outrider.records.probe.engines import engine_name
from outrider.records.probe.outcome import DoesNot, Outcome, Tells, Unknown
from outrider.records.probe.rungs.base import without_answer
from outrider.records.probe.seen import Metrics, Missing, Seen
from outrider.records.reading import AcceptanceRecord, NoMetrics, Reading
from outrider.records.scrape import since_start

SPECULATION_OFF = "speculation is off: vLLM counts requests and has no counters of drafts"
NO_PAGE = "the server has no /metrics (status 404)"
STATS_OFF = "the page has none of vLLM's counters: --disable-log-stats ends them"


def counters_of(seen: Seen) -> Metrics | Outcome:
    """Return /metrics with its counters of drafts, or the outcome of a rung where it has none."""
    metrics = seen.metrics
    if isinstance(metrics, Missing):
        absent = metrics.status == httpx2.codes.NOT_FOUND
        return DoesNot(NO_PAGE) if absent else without_answer(metrics)
    if metrics.first.counts:
        return metrics
    if metrics.first.bad:
        return Unknown(f"line {metrics.first.bad[0][0]}: {metrics.first.bad[0][1]}")
    if seen.log_stats is not None:
        return DoesNot(SPECULATION_OFF if seen.log_stats else STATS_OFF)
    return DoesNot(_reason(metrics, seen.engine))


def tells(metrics: Metrics, readings: Sequence[Reading], zero: str | None = None) -> Tells:
    """Return what readings of the counters tell; where they stand still, that they do."""
    records = tuple(one for one in readings if isinstance(one, AcceptanceRecord))
    reasons = [one.reason for one in readings if isinstance(one, NoMetrics)]
    still = None if records else next(iter(reasons), zero)
    return Tells(records, records[0].k if len(records) == 1 else metrics.k, still)


def _reason(metrics: Metrics, engine: str | None) -> str:
    if metrics.first.gauges:
        told = next(iter(since_start(metrics.first)))
        if isinstance(told, NoMetrics):
            return told.reason
    whose = f"{engine_name(engine)}'s page" if engine else "the page"
    return f"{whose} has no counters of drafts that are read here"
