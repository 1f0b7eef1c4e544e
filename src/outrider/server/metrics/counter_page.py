"""The counters and gauges of the /metrics page: vLLM's under its names, ours under `outrider:`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from outrider.server.metrics.serving_totals import Snapshot
from outrider.server.metrics.speculation_counts import SpeculationCounts, steps_at_positions

_EVERY_STEP = "Counted in all decode steps, those left without a draft included."


@dataclass(frozen=True, eq=False)
class CounterPage(Collector):
    """Tells what `read` gives, under the `labels` of one engine, counted since `created`.

    `created` is Unix time in seconds. Positions are counted from 0, as vLLM does.
    """

    read: Callable[[], Snapshot]
    labels: Mapping[str, str]
    created: float

    def describe(self) -> Iterable[Metric]:
        """Name nothing in advance, since nothing can be read before there is an engine."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Return every counter and gauge as it is now."""
        snapshot = self.read()
        if snapshot.totals.speculation is not None:
            yield from self._speculation(snapshot.totals.speculation)
        yield from self._load(snapshot)
        yield from self._tokens(snapshot)
        yield from self._requests(snapshot)

    def _speculation(self, counts: SpeculationCounts) -> Iterable[Metric]:
        of_vllm, ours = "vllm:spec_decode_num_", "outrider:spec_decode_num_"
        yield self._counter(f"{of_vllm}drafts", "Number of spec decoding drafts.", counts.steps)
        yield self._counter(f"{of_vllm}draft_tokens", "Number of draft tokens.", counts.drafted)
        yield self._counter(
            f"{of_vllm}accepted_tokens", "Number of accepted tokens.", counts.accepted
        )
        yield self._by_position(
            f"{of_vllm}accepted_tokens_per_pos",
            "Accepted tokens per draft position.",
            counts.by_accepted,
        )
        yield self._by_position(
            f"{ours}draft_tokens_per_pos",
            "Drafted tokens per draft position: steps whose draft reached it. Over"
            " vllm:spec_decode_num_drafts it is the part of steps that drafted the position.",
            counts.by_drafted,
        )
        yield self._by_position(
            f"{ours}draft_tokens_at_risk_per_pos",
            "Drafted tokens per draft position of which all before were accepted. Denominator of"
            " conditional survival, with vllm:spec_decode_num_accepted_tokens_per_pos above it;"
            " holds for drafts of any length.",
            counts.by_at_risk,
        )
        yield self._counter(
            f"{ours}accepted_emitted_tokens",
            "Accepted tokens that were delivered: those before a stop cut the run. Over"
            " vllm:spec_decode_num_accepted_tokens it is the part of them that was of use.",
            counts.accepted_emitted,
        )
        yield self._counter(
            f"{ours}invalidated_tokens",
            f"Proposed tokens that a grammar forbade: neither drafted nor rejected. {_EVERY_STEP}",
            counts.invalidated,
        )
        yield self._counter(
            f"{ours}trimmed_tokens",
            "Proposed tokens that were not verified because that did not pay: not among the"
            f" drafted ones. {_EVERY_STEP}",
            counts.trimmed,
        )

    def _load(self, snapshot: Snapshot) -> Iterable[Metric]:
        load = snapshot.load
        yield self._gauge(
            "vllm:num_requests_running",
            "Number of requests in model execution batches.",
            load.running,
        )
        yield self._gauge(
            "vllm:num_requests_waiting",
            "Number of requests waiting to be processed.",
            load.waiting,
        )
        yield self._gauge(
            "vllm:kv_cache_usage_perc",
            "KV-cache usage. 1 means 100 percent usage.",
            load.kv_cache_usage,
        )
        yield self._counter(
            "vllm:num_preemptions",
            "Cumulative number of preemption from the engine.",
            load.preemptions,
        )

    def _tokens(self, snapshot: Snapshot) -> Iterable[Metric]:
        totals = snapshot.totals
        yield self._counter(
            "vllm:prefix_cache_queries",
            "Prefix cache queries, in terms of number of queried tokens.",
            totals.prefix_queries,
        )
        yield self._counter(
            "vllm:prefix_cache_hits",
            "Prefix cache hits, in terms of number of cached tokens.",
            totals.prefix_hits,
        )
        yield self._counter(
            "vllm:prompt_tokens", "Number of prefill tokens processed.", totals.prompt_tokens
        )
        yield self._counter(
            "vllm:prompt_tokens_cached",
            "Number of cached prompt tokens (local + external).",
            totals.cached_tokens,
        )
        yield self._counter(
            "vllm:generation_tokens",
            "Number of generation tokens processed.",
            totals.generation_tokens,
        )

    def _requests(self, snapshot: Snapshot) -> Iterable[Metric]:
        totals = snapshot.totals
        yield self._counters(
            "vllm:request_success",
            "Count of successfully processed requests.",
            "finished_reason",
            totals.ended,
        )
        yield self._counter(
            "outrider:decode_steps",
            "Decode steps, one for each request that a step decoded. Denominator of tokens per"
            " decode step and of coverage.",
            totals.decode_steps,
        )
        yield self._counter(
            "outrider:decode_tokens",
            "Tokens that decode steps delivered: all but the first of each request. Over decode"
            " steps it is tokens per decode step.",
            totals.decode_tokens,
        )

    def _by_position(self, name: str, text: str, by_length: list[int]) -> Metric:
        positions = enumerate(steps_at_positions(by_length))
        return self._counters(name, text, "position", {str(r): steps for r, steps in positions})

    def _counter(self, name: str, text: str, value: int) -> Metric:
        family = CounterMetricFamily(name, text, labels=tuple(self.labels))
        family.add_metric(tuple(self.labels.values()), value, self.created)
        return family

    def _counters(self, name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
        family = CounterMetricFamily(name, text, labels=(*self.labels, label))
        for place, value in values.items():
            family.add_metric((*self.labels.values(), place), value, self.created)
        return family

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        family = GaugeMetricFamily(name, text, labels=tuple(self.labels))
        family.add_metric(tuple(self.labels.values()), value)
        return family
