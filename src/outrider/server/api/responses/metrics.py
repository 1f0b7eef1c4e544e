"""The `metrics` object of a response: speculation and times, as vLLM has them."""

from typing import Any

from outrider.records.speculation_metrics import speculation_metrics
from outrider.server.api.answers import Answer
from outrider.server.api.settings import ResponseMetrics
from outrider.server.service.news import Timing

VLLM_FIELDS = (
    "mean_acceptance_length",
    "draft_acceptance_rate",
    "acceptance_histogram",
    "num_spec_steps",
    "num_accepted_draft_tokens",
    "num_draft_tokens",
    "num_spec_tokens",
    "per_step_accepted",
    "per_step_drafted",
)


def metrics_of(answer: Answer, asked: ResponseMetrics) -> dict[str, Any] | None:
    """Return the object of an answer that has ended; None where there is nothing to tell."""
    end = answer.end
    if end is None or (asked.spec_decode == "none" and not asked.timing):
        return None
    told: dict[str, Any] = dict.fromkeys(_TIMES)
    if asked.timing:
        told = timing_fields(end.timing, answer.tokens)
    speculation = None
    # vLLM looks for stop strings where the engine's own counts do not arrive any more.
    lost = asked.strict and isinstance(end.stopped_by, str)
    if asked.spec_decode != "none" and not lost:
        speculation = speculation_metrics(
            end.steps.steps, num_spec_tokens=asked.num_spec_tokens, detail=asked.spec_decode
        )
        if asked.strict:
            speculation = {name: speculation[name] for name in VLLM_FIELDS}
    if speculation is None and not asked.timing:
        return None
    return {**told, "speculative_decoding": speculation}


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


_TIMES = (
    "time_to_first_token_ms",
    "generation_time_ms",
    "queue_time_ms",
    "mean_itl_ms",
    "tokens_per_second",
)


def timing_fields(timing: Timing, tokens: int) -> dict[str, float | None]:
    """Return vLLM's five times of an answer of so many `tokens`, null where one is unknown.

    The time to the first token begins where the answer first took part in a step: waiting for that
    is the queue time. Several tokens of one step have one time.
    """
    queued, scheduled = timing.queued_s, timing.scheduled_s
    first, last = timing.first_token_s, timing.last_token_s
    generation_s = None if first is None or last is None else last - first
    active_s = None if scheduled is None or last is None else last - scheduled
    return {
        "time_to_first_token_ms": _ms(scheduled, first),
        "generation_time_ms": None if generation_s is None else 1e3 * generation_s,
        "queue_time_ms": _ms(queued, scheduled),
        "mean_itl_ms": (
            1e3 * generation_s / (tokens - 1) if generation_s is not None and tokens > 1 else None
        ),
        "tokens_per_second": tokens / active_s if active_s else None,
    }


def _ms(start_s: float | None, end_s: float | None) -> float | None:
    return None if start_s is None or end_s is None else 1e3 * (end_s - start_s)
