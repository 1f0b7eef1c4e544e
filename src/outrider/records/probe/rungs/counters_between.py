"""The counters of /metrics, twice."""

from outrider.records.probe.commands import report_metrics
from outrider.records.probe.outcome import Line, Outcome
from outrider.records.probe.rungs.counters import counters_of, tells
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
        metrics = counters_of(seen)
        if not isinstance(metrics, Metrics):
            return metrics
        first, second = metrics.first, metrics.second
        readings = [] if second is None else difference(first, second)
        return tells(metrics, readings, ONE_SCRAPE)

    def lines(self, seen: Seen) -> tuple[Line, ...]:
        """Return how an interval is read."""
        gives = "all traffic of a minute, whoever sends it"
        return (Line(report_metrics(seen, interval=INTERVAL), gives),)
