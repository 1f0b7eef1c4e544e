"""What the rungs that are read from an answer have in common."""

from outrider.records.adapters.vllm_absence import FLAG_OFF
from outrider.records.probe.commands import curl_answer
from outrider.records.probe.engines import engine_name
from outrider.records.probe.outcome import DoesNot, Line, Outcome, Tells, Unknown
from outrider.records.probe.rungs.base import without_answer
from outrider.records.probe.seen import Answer, Missing, Seen
from outrider.records.probe.versions import has_request_figures
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics

OBJECT = "metrics.speculative_decoding"
VLLM = "vllm"
"""The adapter of vLLM's object; it also reads answers of no engine in particular."""


def object_record(answer: Answer) -> AcceptanceRecord | None:
    """Return what vLLM's object tells, None where an answer has none."""
    return answer.record if answer.adapter == VLLM else None


def object_of(seen: Seen) -> AcceptanceRecord | Outcome:
    """Return what vLLM's object tells, or the outcome of a rung that looks for it in vain."""
    answer = seen.answer
    if isinstance(answer, Missing):
        return without_answer(answer)
    record = object_record(answer)
    return _no_object(seen, answer) if record is None else record


def tells(seen: Seen, record: AcceptanceRecord, *, lengths: bool = False) -> Tells:
    """Return what an answer tells, and whether a stream tells the same."""
    in_stream, reason = _in_stream(seen, lengths=lengths)
    zero = "nothing was drafted in this answer" if record.steps == 0 else None
    return Tells((record,), record.k, zero, in_stream, reason)


def answer_lines(seen: Seen) -> tuple[Line, ...]:
    """Return how answers are read: one now, then those of real traffic."""
    return (
        Line(curl_answer(seen), "one answer: shows that it works; intervals need five or more"),
        Line("outrider report responses.jsonl", "your own answers, kept one a line in this file"),
    )


def _no_object(seen: Seen, answer: Answer) -> Outcome:
    """Say why an answer has no object of vLLM's."""
    if isinstance(answer.reading, BadRecord):
        return Unknown(f"the answer cannot be used: {answer.reading.reason}")
    if seen.engine is not None and seen.engine != VLLM:
        return DoesNot(f"{OBJECT} is vLLM's; this is {engine_name(seen.engine)}")
    if answer.reading != FLAG_OFF:
        return DoesNot(_reason(answer))
    if has_request_figures(seen.version) is False and seen.engine == VLLM:
        return DoesNot(f"vLLM {seen.version} cannot: known from 0.32 on")
    return DoesNot(_switched_off(seen))


def _switched_off(seen: Seen) -> str:
    if seen.engine is None:
        return f"the answer has no {OBJECT}"
    if seen.speculates:
        return "speculation is on, --per-request-spec-decode-metrics is off"
    if seen.speculates is False:
        return "speculation is off: /metrics counts requests and has no counters of drafts"
    return FLAG_OFF.reason


def _reason(answer: Answer) -> str:
    if isinstance(answer.reading, NoMetrics):
        return answer.reading.reason
    return "this vLLM has its figures in an older place, on the choice"


def _in_stream(seen: Seen, *, lengths: bool) -> tuple[bool | None, str | None]:
    streamed = seen.streamed
    if isinstance(streamed, Missing):
        return None, streamed.reason
    record = streamed.record
    if record is None:
        unusable = isinstance(streamed.reading, BadRecord)
        return (None if unusable else False), getattr(streamed.reading, "reason", None)
    if lengths and record.per_step_accepted is None and record.steps:
        return False, "without the lengths"
    return True, None
