"""The one thread that owns the engine and runs its steps.

A thread and not a process: the kernels let go of the interpreter lock for nearly all of a step, so
the event loop runs meanwhile, and tokens, log-probabilities and counters need no copy through a
pipe. What reaches the engine goes through an inbox that is read between steps; nothing else here
is shared.
"""

import logging
import queue
import threading
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass
from functools import partial

from outrider.engine.engine import Engine
from outrider.engine.sequence import Sequence
from outrider.engine.update import Update
from outrider.errors import OutriderError
from outrider.records.request import FinishReason
from outrider.server.metrics.ended_request import EndedRequest
from outrider.server.metrics.serving_metrics import ServingMetrics
from outrider.server.service.news import End, News
from outrider.server.service.outlet import Outlet

_log = logging.getLogger(__name__)

Delivery = tuple[Outlet, News]
STOPPED = "the engine has stopped"


@dataclass(frozen=True, slots=True)
class Job:
    """A sequence in the engine, answer number `answer` of what `outlet` leads to."""

    sequence: Sequence
    outlet: Outlet
    answer: int
    arrived_s: float


class EngineThread:
    """Runs `engine` while it is busy and sleeps while it is not.

    `hand_over` gets all that a step has to tell, once for each step, in this thread. `metrics` is
    what the engine's loop reports to; `clock`, in seconds, is that of both.
    """

    def __init__(
        self,
        engine: Engine,
        metrics: ServingMetrics,
        *,
        hand_over: Callable[[list[Delivery]], None],
        clock: Callable[[], float],
    ) -> None:
        self.failure: str | None = None
        self._engine = engine
        self._metrics = metrics
        self._hand_over = hand_over
        self._clock = clock
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._jobs: dict[str, Job] = {}
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def submit(self, sequences: Sequence_[Sequence], outlet: Outlet) -> None:
        """Have the engine answer `sequences` at its next step; from any thread."""
        now = self._clock()
        jobs = [Job(each, outlet, place, now) for place, each in enumerate(sequences)]
        self._inbox.put(partial(self._add, jobs))

    def cancel(self, request_ids: Iterable[str]) -> None:
        """End requests before the next step, those that have not ended by then; any thread."""
        self._inbox.put(partial(self._cancel, tuple(request_ids)))

    def stop(self) -> None:
        """End after the current step; what runs is left unfinished. Waits; from another thread."""
        self._inbox.put(self._stop)
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while self._read_inbox():
                self._step()
        except Exception as error:  # noqa: BLE001  whatever it is, every request has to hear of it
            _log.exception("the engine has failed")
            self.failure = f"{STOPPED} ({type(error).__name__})"
            self._fail_all()

    def _read_inbox(self) -> bool:
        """Do what the inbox says, waiting for it while there is nothing else; False to stop."""
        wait = not self._engine.busy
        while not self._stopping:
            try:
                command = self._inbox.get(block=wait)
            except queue.Empty:
                break
            command()
            wait = False
        return not self._stopping

    def _fail_all(self) -> None:
        """Answer all there are and all that still come, until told to stop."""
        while not self._stopping:
            if self._jobs:
                self._hand_over([self._failed(job, self.failure) for job in self._jobs.values()])
                for name in self._jobs:
                    self._metrics.failed(name)
                self._jobs.clear()
            self._inbox.get()()

    def _add(self, jobs: list[Job]) -> None:
        for job in jobs:
            name = job.sequence.request_id
            self._jobs[name] = job
            if self.failure is not None:
                continue
            try:
                self._engine.add(job.sequence)
            except OutriderError as error:
                del self._jobs[name]
                self._hand_over([self._failed(job, str(error))])
            else:
                self._metrics.added(job.sequence, arrived=job.arrived_s)

    def _cancel(self, request_ids: tuple[str, ...]) -> None:
        for name in request_ids:
            job = self._jobs.pop(name, None)
            if job is not None and self.failure is None:
                self._engine.cancel(name)
                self._metrics.cancelled(name)

    def _stop(self) -> None:
        self._stopping = True

    def _step(self) -> None:
        if not self._engine.busy:
            return
        updates = self._engine.step()
        ended = self._metrics.stepped(updates)
        if updates:
            self._hand_over(
                [self._delivery(each, ended.get(each.sequence.request_id)) for each in updates]
            )

    def _delivery(self, update: Update, counted: EndedRequest | None) -> Delivery:
        sequence = update.sequence
        name = sequence.request_id
        output = sequence.output_token_ids
        end = None
        if update.finish_reason is None:
            job = self._jobs[name]
        else:
            job = self._jobs.pop(name)
            end = End(update.finish_reason, update.stopped_by, update.failure, counted)
        return job.outlet, News(
            job.answer,
            output[len(output) - update.tokens :].tolist(),
            update.text,
            [] if update.logprobs is None else [update.logprobs],
            end,
        )

    @staticmethod
    def _failed(job: Job, failure: str | None) -> Delivery:
        end = End(FinishReason.ERROR, failure=failure or STOPPED)
        return job.outlet, News(job.answer, end=end)
