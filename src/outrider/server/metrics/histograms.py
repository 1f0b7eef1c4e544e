"""The histograms of the /metrics page: vLLM's with its names and buckets, and our own."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Histogram

from outrider.records.request import StepRecord
from outrider.server.metrics.request_times import RequestTimes

_BY_TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
_BY_STEP_TOKENS = tuple(1 << power for power in (0, *range(3, 15)))
_BY_FIRST_TOKEN_S = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560),
)
_BY_GAP_S = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1, 2.5, 5, 7.5, 10, 20, 40, 80),
)
_BY_REQUEST_S = (
    *(0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60),
    *(120, 240, 480, 960, 1920, 7680),
)
_BY_STEP_S = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1),
    *(0.25, 0.5, 1, 2.5, 5, 10),
)
_STEPS = "Denominator: engine steps in which at least one request decoded."


class _Declared(NamedTuple):
    name: str
    text: str
    buckets: Sequence[float]


_PROMPT_TOKENS = _Declared(
    "vllm:request_prompt_tokens", "Number of prefill tokens processed.", _BY_TOKENS
)
_GENERATION_TOKENS = _Declared(
    "vllm:request_generation_tokens", "Number of generation tokens processed.", _BY_TOKENS
)
_STEP_TOKENS = _Declared(
    "vllm:iteration_tokens_total", "Histogram of number of tokens per engine_step.", _BY_STEP_TOKENS
)
_FIRST_TOKEN_S = _Declared(
    "vllm:time_to_first_token_seconds",
    "Histogram of time to first token in seconds.",
    _BY_FIRST_TOKEN_S,
)
_TOKEN_GAP_S = _Declared(
    "vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", _BY_GAP_S
)
_PER_OUTPUT_TOKEN_S = _Declared(
    "vllm:request_time_per_output_token_seconds",
    "Histogram of time_per_output_token_seconds per request.",
    _BY_GAP_S,
)
_REQUEST_S = _Declared(
    "vllm:e2e_request_latency_seconds",
    "Histogram of e2e request latency in seconds.",
    _BY_REQUEST_S,
)
_QUEUE_S = _Declared(
    "vllm:request_queue_time_seconds",
    "Histogram of time spent in WAITING phase for request.",
    _BY_REQUEST_S,
)
_INFERENCE_S = _Declared(
    "vllm:request_inference_time_seconds",
    "Histogram of time spent in RUNNING phase for request.",
    _BY_REQUEST_S,
)
_PREFILL_S = _Declared(
    "vllm:request_prefill_time_seconds",
    "Histogram of time spent in PREFILL phase for request.",
    _BY_REQUEST_S,
)
_DECODE_S = _Declared(
    "vllm:request_decode_time_seconds",
    "Histogram of time spent in DECODE phase for request.",
    _BY_REQUEST_S,
)
_DRAFT_S = _Declared(
    "outrider:draft_time_seconds",
    f"Time that the drafter took to propose, for all requests of a step. {_STEPS}",
    _BY_STEP_S,
)
_VERIFY_S = _Declared(
    "outrider:verify_time_seconds",
    f"Time of the target's forward pass and the judgement of all drafts. {_STEPS}",
    _BY_STEP_S,
)
_STEP_S = _Declared(
    "outrider:step_time_seconds",
    f"Time of a whole step; drafting and verifying are parts of it. {_STEPS}",
    _BY_STEP_S,
)


class Histograms:
    """One series of each histogram, with the labels of one engine; draft times if it drafts.

    vLLM's gap between tokens is one between deliveries: a step may deliver several tokens.
    """

    def __init__(
        self, registry: CollectorRegistry, labels: Mapping[str, str], *, drafts: bool
    ) -> None:
        def of(declared: _Declared) -> Histogram:
            name, text, buckets = declared
            histogram = Histogram(name, text, tuple(labels), registry=registry, buckets=buckets)
            return histogram.labels(**labels)

        self.prompt_tokens = of(_PROMPT_TOKENS)
        self.generation_tokens = of(_GENERATION_TOKENS)
        self.step_tokens = of(_STEP_TOKENS)
        self.first_token_s = of(_FIRST_TOKEN_S)
        self.token_gap_s = of(_TOKEN_GAP_S)
        self.per_output_token_s = of(_PER_OUTPUT_TOKEN_S)
        self.request_s = of(_REQUEST_S)
        self.queue_s = of(_QUEUE_S)
        self.inference_s = of(_INFERENCE_S)
        self.prefill_s = of(_PREFILL_S)
        self.decode_s = of(_DECODE_S)
        self.draft_s = of(_DRAFT_S) if drafts else None
        self.verify_s = of(_VERIFY_S)
        self.step_s = of(_STEP_S)

    def observe_step(self, record: StepRecord) -> None:
        """Observe the times of an engine step, which all its records share."""
        if self.draft_s is not None:
            self.draft_s.observe(record.draft_s)
        self.verify_s.observe(record.verify_s)
        self.step_s.observe(record.step_s)

    def observe_request(
        self, times: RequestTimes, *, prompt_tokens: int, completion_tokens: int
    ) -> None:
        """Observe a request that came to its end; nothing of one that got no token."""
        if times.scheduled is None or times.first_token is None or times.last_token is None:
            return
        decode_s = times.last_token - times.first_token
        self.prompt_tokens.observe(prompt_tokens)
        self.generation_tokens.observe(completion_tokens)
        self.request_s.observe(times.last_token - times.arrived)
        self.queue_s.observe(times.scheduled - times.queued)
        self.inference_s.observe(times.last_token - times.scheduled)
        self.prefill_s.observe(times.first_token - times.scheduled)
        self.decode_s.observe(decode_s)
        if completion_tokens > 1:
            self.per_output_token_s.observe(decode_s / (completion_tokens - 1))
