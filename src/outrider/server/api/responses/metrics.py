"""The `metrics` object of a response: speculation and times, as vLLM has them."""

from typing import Any

from outrider.records.speculation_metrics import speculation_metrics, vllm_would_tell
from outrider.server.api.answers import Answer, Answers
from outrider.server.api.settings import ResponseMetrics
from outrider.server.metrics.request_times import timing_fields


def metrics_of(answer: Answer, asked: ResponseMetrics, *, answers: int) -> dict[str, Any] | None:
    """Return the object of one of so many answers, which has ended; None with nothing to tell."""
    counted = None if answer.end is None else answer.end.counted
    if counted is None or (asked.spec_decode == "none" and not asked.timing):
        return None
    told: dict[str, Any] = timing_fields(counted.times, counted.completion_tokens)
    if not asked.timing:
        told = dict.fromkeys(told)
    told["speculative_decoding"] = None
    stopped_by = answer.end.stopped_by if answer.end is not None else None
    tells = not asked.strict or vllm_would_tell(answers=answers, stopped_by=stopped_by)
    if asked.spec_decode != "none" and tells:
        told["speculative_decoding"] = speculation_metrics(
            counted.recorded.steps,
            num_spec_tokens=asked.num_spec_tokens,
            detail=asked.spec_decode,
            strict=asked.strict,
        )
    return told if any(value is not None for value in told.values()) else None


def of_choice(answer: Answer, asked: ResponseMetrics, *, answers: int) -> dict[str, Any]:
    """Return what a choice tells of its own: of several answers each, which vLLM does not do."""
    if answers == 1 or asked.strict:
        return {}
    return {"metrics": metrics_of(answer, asked, answers=answers)}


def of_body(answers: Answers, asked: ResponseMetrics) -> dict[str, Any] | None:
    """Return what a body tells beside its only answer; None for several."""
    [first, *others] = answers.each
    return None if others else metrics_of(first, asked, answers=1)


def in_stream(told: dict[str, Any] | None) -> dict[str, Any]:
    """Return the field of a chunk with these metrics, which a chunk without any lacks."""
    kept = without_nulls(told)
    return {} if kept is None else {"metrics": kept}


def without_nulls(metrics: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the object as a stream has it; None where nothing is left."""
    if metrics is None:
        return None
    kept = {name: value for name, value in metrics.items() if value is not None}
    if "speculative_decoding" in kept:
        kept["speculative_decoding"] = {
            name: value for name, value in kept["speculative_decoding"].items() if value is not None
        }
    return kept or None
