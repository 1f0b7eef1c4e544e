"""When a request passed each mark, and what vLLM's timing fields say of that."""

from dataclasses import dataclass


@dataclass(slots=True)
class RequestTimes:
    """Moments of one clock, in seconds; None for what has not happened.

    A request arrives at the server, is queued in the engine, and is scheduled when a step first
    computes part of its prompt. The last token is the last so far.
    """

    arrived: float
    queued: float
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float | None = None


def timing_fields(times: RequestTimes, completion_tokens: int) -> dict[str, float | None]:
    """Return the timing fields of vLLM's `metrics` object: milliseconds, and tokens per second.

    The time to the first token leaves the queue out. Tokens of one step share a moment, so that
    `mean_itl_ms` is a mean over tokens and no latency of any of them.

    >>> times = RequestTimes(1.0, 1.0, scheduled=1.5, first_token=2.0, last_token=4.0)
    >>> timing_fields(times, 5)["mean_itl_ms"], timing_fields(times, 5)["tokens_per_second"]
    (500.0, 2.0)
    """
    generation_s = _span(times.first_token, times.last_token)
    running_s = _span(times.scheduled, times.last_token)
    return {
        "time_to_first_token_ms": _milliseconds(_span(times.scheduled, times.first_token)),
        "generation_time_ms": _milliseconds(generation_s),
        "queue_time_ms": _milliseconds(_span(times.queued, times.scheduled)),
        "mean_itl_ms": (
            None
            if generation_s is None or completion_tokens <= 1
            else _milliseconds(generation_s / (completion_tokens - 1))
        ),
        "tokens_per_second": completion_tokens / running_s if running_s else None,
    }


def _span(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else end - start


def _milliseconds(span_s: float | None) -> float | None:
    return None if span_s is None else 1000 * span_s
