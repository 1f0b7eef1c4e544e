"""What a probe found, ready to be printed in any form."""

from dataclasses import dataclass

from outrider.advice.probe_additions import Addition, additions
from outrider.records.probe.outcome import Line, Outcome, Tells
from outrider.records.probe.rungs.registry import RUNGS
from outrider.records.probe.seen import Seen

OF_REQUESTS = ("request_detailed", "request_summary", "request_other")
ALL_TRAFFIC = "counters_between"
WITHOUT_FIGURES = ("server_log", "time_per_token")


@dataclass(frozen=True, slots=True)
class JudgedRung:
    """A rung with its place in the order, from 1, and what it came to."""

    number: int
    name: str
    title: str
    outcome: Outcome
    lines: tuple[Line, ...]

    @property
    def tells(self) -> bool:
        """Whether figures can be had here."""
        return isinstance(self.outcome, Tells)


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """A server as it was seen, each rung, what to type next and what would give more."""

    seen: Seen
    rungs: tuple[JudgedRung, ...]
    next_lines: tuple[Line, ...]
    more: tuple[Addition, ...]

    @property
    def best(self) -> JudgedRung | None:
        """The first rung that tells."""
        return next((rung for rung in self.rungs if rung.tells), None)


def build_probe_report(seen: Seen) -> ProbeReport:
    """Return the report: every rung is judged, also those below the best."""
    rungs = tuple(
        JudgedRung(number, rung.name, rung.title, rung.judge(seen), rung.lines(seen))
        for number, rung in enumerate(RUNGS, 1)
    )
    return ProbeReport(seen, rungs, _next_lines(seen, rungs), additions(seen))


def _next_lines(seen: Seen, rungs: tuple[JudgedRung, ...]) -> tuple[Line, ...]:
    best = next((rung for rung in rungs if rung.tells), None)
    if best is None and (seen.wants_key or not seen.is_inference_server):
        return ()
    if best is None:
        wanted = [rung for rung in rungs if rung.name in WITHOUT_FIGURES]
    else:
        # Answers are those of one client; the counters have all of them.
        too = best.name in OF_REQUESTS
        wanted = [best, *(r for r in rungs if too and r.tells and r.name == ALL_TRAFFIC)]
    return tuple(line for rung in wanted for line in rung.lines)
