"""Each answer of vLLM, summed up."""

from msgspec.structs import replace

from outrider.records.probe.outcome import Outcome, Step
from outrider.records.probe.rungs.answer_figures import (
    answer_steps,
    no_object,
    object_record,
    tells,
)
from outrider.records.probe.rungs.base import without_answer
from outrider.records.probe.seen import Missing, Seen


class RequestSummary:
    """The acceptance histogram of an answer, and its counts."""

    name = "request_summary"
    title = "each answer, summed up"

    def judge(self, seen: Seen) -> Outcome:
        """Look for vLLM's object; a detailed one has the sums as well."""
        answer = seen.answer
        if isinstance(answer, Missing):
            return without_answer(answer)
        record = object_record(answer)
        if record is None:
            return no_object(seen, answer)
        return tells(seen, replace(record, per_step_accepted=None, per_step_drafted=None))

    def steps(self, seen: Seen) -> tuple[Step, ...]:
        """Return how answers are read."""
        return answer_steps(seen)
