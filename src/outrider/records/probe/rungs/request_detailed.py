"""Each answer of vLLM, step by step."""

from outrider.records.probe.outcome import DoesNot, Line, Outcome, Unknown
from outrider.records.probe.rungs.answer_figures import answer_lines, object_of, tells
from outrider.records.probe.seen import Seen
from outrider.records.reading import AcceptanceRecord

AT_SUMMARY = "the server is at `summary`; `detailed` lists every step"
NOT_SHOWN = "nothing was drafted in this answer, so that it has no lengths to list"


class RequestDetailed:
    """The drafted and the accepted length of every step of an answer."""

    name = "request_detailed"
    title = "each answer, every step"

    def judge(self, seen: Seen) -> Outcome:
        """Look for the lists of lengths in vLLM's object."""
        record = object_of(seen)
        if not isinstance(record, AcceptanceRecord):
            return record
        if record.per_step_accepted is not None and record.per_step_drafted is not None:
            return tells(seen, record, lengths=True)
        return DoesNot(AT_SUMMARY) if record.steps else Unknown(NOT_SHOWN)

    def lines(self, seen: Seen) -> tuple[Line, ...]:
        """Return how answers are read."""
        return answer_lines(seen)
