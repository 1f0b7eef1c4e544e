"""The rungs, best first: this is the stated order in which a server is judged."""

from outrider.records.probe.rungs.base import Rung
from outrider.records.probe.rungs.counters_between import CountersBetween
from outrider.records.probe.rungs.counters_since_start import CountersSinceStart
from outrider.records.probe.rungs.request_detailed import RequestDetailed
from outrider.records.probe.rungs.request_other import RequestOther
from outrider.records.probe.rungs.request_summary import RequestSummary
from outrider.records.probe.rungs.server_log import ServerLog
from outrider.records.probe.rungs.time_per_token import TimePerToken

RUNGS: tuple[Rung, ...] = (
    RequestDetailed(),
    RequestSummary(),
    RequestOther(),
    CountersBetween(),
    CountersSinceStart(),
    ServerLog(),
    TimePerToken(),
)
