"""The counters of /metrics, once."""

from outrider.records.probe.commands import report_metrics
from outrider.records.probe.outcome import Line, Outcome
from outrider.records.probe.rungs.counters import counters_of, tells
from outrider.records.probe.seen import Metrics, Seen
from outrider.records.scrape import since_start


class CountersSinceStart:
    """One scrape: all that the server did since it started, warm-up included."""

    name = "counters_since_start"
    title = "/metrics, one scrape"

    def judge(self, seen: Seen) -> Outcome:
        """Read the latest counters."""
        metrics = counters_of(seen)
        if not isinstance(metrics, Metrics):
            return metrics
        return tells(metrics, since_start(metrics.second or metrics.first))

    def lines(self, seen: Seen) -> tuple[Line, ...]:
        """Return how the counters are read once."""
        return (Line(report_metrics(seen), "all traffic since the server started"),)
