"""Each answer of vLLM, summed up."""

from msgspec.structs import replace

from outrider.records.probe.outcome import Line, Outcome
from outrider.records.probe.rungs.answer_figures import answer_lines, object_of, tells
from outrider.records.probe.seen import Seen
from outrider.records.reading import AcceptanceRecord


class RequestSummary:
    """The acceptance histogram of an answer, and its counts."""

    name = "request_summary"
    title = "each answer, summed up"

    def judge(self, seen: Seen) -> Outcome:
        """Look for vLLM's object; a detailed one has the sums as well."""
        record = object_of(seen)
        if not isinstance(record, AcceptanceRecord):
            return record
        return tells(seen, replace(record, per_step_accepted=None, per_step_drafted=None))

    def lines(self, seen: Seen) -> tuple[Line, ...]:
        """Return how answers are read."""
        return answer_lines(seen)
