"""What the server prints."""

from outrider.records.probe.commands import vllm_serve
from outrider.records.probe.engines import engine_name
from outrider.records.probe.outcome import DoesNot, Line, NotTried, Outcome
from outrider.records.probe.rungs.counters import STATS_OFF
from outrider.records.probe.seen import Seen

UNSEEN = "a log cannot be seen over HTTP"
_READ = {
    "vllm": "vLLM prints the figures of every 10 s",
    "llama.cpp": "llama-server prints those of every answer",
}


class ServerLog:
    """Lines of the log: figures of an interval each, rounded."""

    name = "server_log"
    title = "the server's log"

    def judge(self, seen: Seen) -> Outcome:
        """Say what is known of a log without seeing it."""
        if seen.speculates is False:
            return DoesNot("speculation is off")
        if seen.log_stats is False:
            return DoesNot(STATS_OFF.partition(": ")[2])
        if seen.engine is not None and seen.engine not in _READ:
            return NotTried(f"{UNSEEN}; {engine_name(seen.engine)}'s is not read")
        told = _READ.get(seen.engine or "")
        return NotTried(f"{UNSEEN}; {told}" if told else UNSEEN)

    def lines(self, seen: Seen) -> tuple[Line, ...]:
        """Return how a log is read, where it is one that can be."""
        if seen.engine not in (None, *_READ) or not isinstance(self.judge(seen), NotTried):
            return ()
        llama = seen.engine == "llama.cpp"
        started = "llama-server …" if llama else vllm_serve(seen)
        # Not piped into the report: Ctrl-C, which ends the server, would end it as well.
        command = f"{started} 2>&1 | tee server.log\noutrider report server.log"
        covers = "every answer" if llama else "every 10 s, where log stats are on"
        return (Line(command, f"{covers}; the report while it runs, or later"),)
