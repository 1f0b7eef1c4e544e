"""What the engine thread reports, counted, and told to whoever asks."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock

from prometheus_client import CollectorRegistry, ProcessCollector

from outrider.engine.recorder import StepRecorder
from outrider.engine.sequence import Sequence
from outrider.engine.update import Update
from outrider.records.request import FinishReason, StepRecord
from outrider.server.metrics.counter_page import CounterPage
from outrider.server.metrics.ended_request import EndedRequest
from outrider.server.metrics.engine_load import EngineLoad
from outrider.server.metrics.exposition import encoded
from outrider.server.metrics.histograms import Histograms
from outrider.server.metrics.recent_hits import RecentHits
from outrider.server.metrics.request_times import RequestTimes
from outrider.server.metrics.serving_totals import ABORT, ServingTotals, Snapshot
from outrider.server.metrics.speculation_counts import SpeculationCounts


@dataclass(frozen=True, slots=True)
class _Request:
    sequence: Sequence
    times: RequestTimes

    @property
    def completion_tokens(self) -> int:
        return len(self.sequence) - self.sequence.prompt_tokens


class ServingMetrics:
    """Counts for one engine; a `Recorder`, so that the step loop reports to it.

    The engine thread calls `added`, `stepped` after each step, `cancelled` and `failed`; any thread
    may `render` or take a `snapshot`, and sees no step half counted. A request that was never
    added, as in a warm-up, is in no number. `k` is the configured maximum draft length, 0 where
    speculation is off: then nothing is told of it. `load` looks at the engine, from any thread.
    `clock` and `wall_clock` give seconds, the latter since 1970.
    """

    def __init__(
        self,
        *,
        model_name: str,
        k: int,
        load: Callable[[], EngineLoad],
        clock: Callable[[], float],
        engine: int = 0,
        prefix_caching: bool = True,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        labels = {"engine": str(engine), "model_name": model_name}
        self.registry = CollectorRegistry()
        self._page = CounterPage(self._read, labels, wall_clock())
        self.registry.register(self._page)
        self._histograms = Histograms(self.registry, labels, drafts=k > 0)
        ProcessCollector(registry=self.registry)
        self._totals = ServingTotals(SpeculationCounts(k) if k else None)
        self._recent_hits = RecentHits()
        self._steps = StepRecorder()
        self._requests: dict[str, _Request] = {}
        self._pending: list[StepRecord] = []
        self._load = load
        self._clock = clock
        self._prefix_caching = prefix_caching
        self._lock = Lock()

    def prefill(self, sequence: Sequence, step_s: float) -> None:
        """Take note of a step that computed part of a prompt; the first one was its scheduling."""
        request = self._requests.get(sequence.request_id)
        if request is None:
            return
        self._steps.prefill(sequence, step_s)
        if request.times.scheduled is None:
            request.times.scheduled = self._clock() - step_s
            self._count_prefix(sequence)

    def step(self, sequence: Sequence, record: StepRecord) -> None:
        """Take note of one decode step of `sequence`; it is counted when the step is over."""
        if sequence.request_id in self._requests:
            self._steps.step(sequence, record)
            self._pending.append(record)

    def added(self, sequence: Sequence, *, arrived: float | None = None) -> None:
        """Take note of a request that waits in the engine from now on.

        It `arrived` at the server at that time of the clock, or now.
        """
        now = self._clock()
        times = RequestTimes(arrived=now if arrived is None else arrived, queued=now)
        self._requests[sequence.request_id] = _Request(sequence, times)

    def stepped(self, updates: Iterable[Update]) -> dict[str, EndedRequest]:
        """Count what a step did, its `updates` being those that the engine returned.

        Returns the requests that have ended by it, by id, and forgets them.
        """
        now = self._clock()
        ended = {}
        with self._lock:
            self._count_steps()
            before = self._totals.computed_prompt_tokens + self._totals.generation_tokens
            for update in updates:
                request_id = update.sequence.request_id
                request = self._requests.get(request_id)
                if request is None:
                    continue
                if update.tokens:
                    self._count_delivery(request, update.tokens, now)
                if update.finish_reason is not None:
                    self._count_end(request, update.finish_reason)
                    ended[request_id] = self._forget(request_id, request)
            after = self._totals.computed_prompt_tokens + self._totals.generation_tokens
            if after > before:
                self._histograms.step_tokens.observe(after - before)
        return ended

    def cancelled(self, request_id: str) -> EndedRequest | None:
        """Count a request whose client has gone; None if it has ended already."""
        return self._drop(request_id, ABORT)

    def failed(self, request_id: str) -> EndedRequest | None:
        """Count a request that the server could not go on with; None if it has ended already.

        Those that a step fails are among its updates.
        """
        return self._drop(request_id, FinishReason.ERROR)

    def snapshot(self) -> Snapshot:
        """Return all counts as they are now."""
        with self._lock:
            return self._read()

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return the page and its content type, as the Accept header `accept` asks for it."""
        with self._lock:
            metrics = list(self.registry.collect())
        return encoded(metrics, accept)

    def _read(self) -> Snapshot:
        return Snapshot(self._totals.copy(), self._load(), self._recent_hits.rate)

    def _count_prefix(self, sequence: Sequence) -> None:
        # One that asks for log-probabilities of its prompt does not look into the cache.
        asks = sequence.sampling.parameters.prompt_logprobs is not None
        if not self._prefix_caching or asks:
            return
        found = sequence.cached_tokens or 0
        with self._lock:
            self._totals.prefix_queries += sequence.prompt_tokens
            self._totals.prefix_hits += found
            self._recent_hits.add(sequence.prompt_tokens, found)

    def _count_steps(self) -> None:
        if not self._pending:
            return
        for record in self._pending:
            self._totals.add(record)
        self._histograms.observe_step(self._pending[-1])
        self._pending.clear()

    def _count_delivery(self, request: _Request, tokens: int, now: float) -> None:
        times, totals = request.times, self._totals
        totals.generation_tokens += tokens
        if times.last_token is None:
            totals.prompt_tokens += request.sequence.prompt_tokens
            totals.cached_tokens += request.sequence.cached_tokens or 0
            times.first_token = now
            self._histograms.first_token_s.observe(now - times.arrived)
        else:
            self._histograms.token_gap_s.observe(now - times.last_token)
        times.last_token = now

    def _count_end(self, request: _Request, reason: FinishReason) -> None:
        self._totals.ended[reason] += 1
        if reason is not FinishReason.ERROR:
            self._histograms.observe_request(
                request.times,
                prompt_tokens=request.sequence.prompt_tokens,
                completion_tokens=request.completion_tokens,
            )

    def _drop(self, request_id: str, reason: str) -> EndedRequest | None:
        request = self._requests.get(request_id)
        if request is None:
            return None
        with self._lock:
            self._totals.ended[reason] += 1
        return self._forget(request_id, request)

    def _forget(self, request_id: str, request: _Request) -> EndedRequest:
        del self._requests[request_id]
        recorded = self._steps.take(request.sequence)
        return EndedRequest(recorded, request.times, request.completion_tokens)
