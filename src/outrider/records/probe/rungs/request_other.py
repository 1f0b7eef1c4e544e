"""Each answer, in the places of other engines and of older vLLM."""

from outrider.records.adapters import llama_server, mlx, sglang, tensorrt_llm
from outrider.records.probe.outcome import DoesNot, Line, Outcome, Unknown
from outrider.records.probe.rungs.answer_figures import OBJECT, VLLM, answer_lines, tells
from outrider.records.probe.rungs.base import without_answer
from outrider.records.probe.seen import Answer, Missing, Seen
from outrider.records.reading import BadRecord, NoMetrics

_UNSETTLED = (
    sglang.ALL_ZERO,
    tensorrt_llm.ALL_ZERO,
    llama_server.NOTHING_DRAFTED,
    mlx.NOTHING_DRAFTED,
)
"""Answers that may hide a 0, or stand for unknown."""
ASKED_IN_VAIN = (
    "SGLang was asked with return_spec_tokens_details and gives none: speculation is off, or the"
    " version is older"
)
FIELD_REFUSED = "SGLang refuses return_spec_tokens_details, without which it tells nothing"


class RequestOther:
    """`speculative_decoding_stats`, and the fields of SGLang, TensorRT-LLM, llama.cpp and mlx."""

    name = "request_other"
    title = "each answer, other fields"

    def judge(self, seen: Seen) -> Outcome:
        """Look for what any adapter but vLLM's reads."""
        answer = seen.answer
        if isinstance(answer, Missing):
            return without_answer(answer)
        if answer.adapter == VLLM:
            return DoesNot(f"{OBJECT} has them" if answer.record else "the answer has none of them")
        if answer.record is not None:
            return tells(seen, answer.record)
        return _absent(answer)

    def lines(self, seen: Seen) -> tuple[Line, ...]:
        """Return how answers are read."""
        return answer_lines(seen)


def _absent(answer: Answer) -> Outcome:
    reading = answer.reading
    if reading == sglang.NOT_ASKED_FOR:
        return DoesNot(ASKED_IN_VAIN if answer.fields else FIELD_REFUSED)
    if reading in _UNSETTLED and isinstance(reading, NoMetrics):
        return Unknown(reading.reason)
    if isinstance(reading, BadRecord):
        return Unknown(f"the answer cannot be used: {reading.reason}")
    return DoesNot(reading.reason if isinstance(reading, NoMetrics) else "the answer has none")
