"""Each answer of vLLM, step by step."""

from outrider.records.probe.outcome import DoesNot, Outcome, Step, Unknown
from outrider.records.probe.rungs.answer_figures import (
    answer_steps,
    no_object,
    object_record,
    tells,
)
from outrider.records.probe.rungs.base import without_answer
from outrider.records.probe.seen import Missing, Seen

AT_SUMMARY = "the server is at `summary`; `detailed` lists every step"
NOT_SHOWN = "nothing was drafted in this answer, so that it has no lengths to list"


class RequestDetailed:
    """The drafted and the accepted length of every step of an answer."""

    name = "request_detailed"
    title = "each answer, every step"

    def judge(self, seen: Seen) -> Outcome:
        """Look for the lists of lengths in vLLM's object."""
        answer = seen.answer
        if isinstance(answer, Missing):
            return without_answer(answer)
        record = object_record(answer)
        if record is None:
            return no_object(seen, answer)
        if record.per_step_accepted is not None and record.per_step_drafted is not None:
            return tells(seen, record, lengths=True)
        return DoesNot(AT_SUMMARY) if record.steps else Unknown(NOT_SHOWN)

    def steps(self, seen: Seen) -> tuple[Step, ...]:
        """Return how answers are read."""
        return answer_steps(seen)
