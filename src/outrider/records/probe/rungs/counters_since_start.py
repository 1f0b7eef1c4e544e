"""The counters of /metrics, once."""

from outrider.records.probe.commands import report_metrics
from outrider.records.probe.outcome import Outcome, Step
from outrider.records.probe.rungs.counters import tells, without_counters
from outrider.records.probe.seen import Metrics, Seen
from outrider.records.scrape import since_start


class CountersSinceStart:
    """One scrape: all that the server did since it started, warm-up included."""

    name = "counters_since_start"
    title = "/metrics, one scrape"

    def judge(self, seen: Seen) -> Outcome:
        """Read the latest counters."""
        absent = without_counters(seen)
        if absent is not None:
            return absent
        assert isinstance(seen.metrics, Metrics)
        return tells(seen.metrics, since_start(seen.metrics.second or seen.metrics.first))

    def steps(self, seen: Seen) -> tuple[Step, ...]:
        """Return how the counters are read once."""
        return (Step(report_metrics(seen), "all traffic since the server started"),)
