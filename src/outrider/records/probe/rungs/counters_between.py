"""The counters of /metrics, twice."""

from outrider.records.probe.commands import report_metrics
from outrider.records.probe.outcome import Outcome, Step
from outrider.records.probe.rungs.counters import tells, without_counters
from outrider.records.probe.seen import Metrics, Seen
from outrider.records.scrape import difference

INTERVAL = "60s"
ONE_SCRAPE = "the counters are there; nothing was sent between two scrapes"


class CountersBetween:
    """The difference of two scrapes: all that the server did in between."""

    name = "counters_between"
    title = "/metrics, two scrapes"

    def judge(self, seen: Seen) -> Outcome:
        """Subtract the counters before the requests from those after them."""
        absent = without_counters(seen)
        if absent is not None:
            return absent
        assert isinstance(seen.metrics, Metrics)
        first, second = seen.metrics.first, seen.metrics.second
        readings = [] if second is None else difference(first, second)
        return tells(seen.metrics, readings, ONE_SCRAPE)

    def steps(self, seen: Seen) -> tuple[Step, ...]:
        """Return how an interval is read."""
        gives = "all traffic of a minute, whoever sends it"
        return (Step(report_metrics(seen, interval=INTERVAL), gives),)
