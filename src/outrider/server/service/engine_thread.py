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
from outrider.engine.recorder import StepRecorder
from outrider.engine.sequence import Sequence
from outrider.engine.update import Update
from outrider.errors import OutriderError
from outrider.records.request import FinishReason
from outrider.server.service.news import End, News, Timing
from outrider.server.service.observer import Observer
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
    timing: Timing


class EngineThread:
    """Runs `engine` while it is busy and sleeps while it is not.

    `hand_over` gets all that a step has to tell, once for each step, in this thread. `recorder` is
    the one that the engine's loop reports to. `clock` gives seconds.
    """

    def __init__(
        self,
        engine: Engine,
        recorder: StepRecorder,
        *,
        hand_over: Callable[[list[Delivery]], None],
        clock: Callable[[], float],
        observer: Observer,
    ) -> None:
        self.failure: str | None = None
        self._engine = engine
        self._recorder = recorder
        self._hand_over = hand_over
        self._clock = clock
        self._observer = observer
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._jobs: dict[str, Job] = {}
        self._unscheduled: dict[str, Job] = {}
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def submit(self, sequences: Sequence_[Sequence], outlet: Outlet) -> None:
        """Have the engine answer `sequences` at its next step; from any thread."""
        now = self._clock()
        jobs = [Job(each, outlet, place, Timing(now)) for place, each in enumerate(sequences)]
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
                self._unscheduled[name] = job

    def _cancel(self, request_ids: tuple[str, ...]) -> None:
        for name in request_ids:
            job = self._jobs.pop(name, None)
            if job is None:
                continue
            self._unscheduled.pop(name, None)
            if self.failure is None:
                self._engine.cancel(name)
            self._recorder.take(job.sequence)
            self._observer.cancelled(job.sequence)

    def _stop(self) -> None:
        self._stopping = True

    def _step(self) -> None:
        if not self._engine.busy:
            return
        start = self._clock()
        updates = self._engine.step()
        now = self._clock()
        for name, job in tuple(self._unscheduled.items()):
            if job.sequence.cached_tokens is not None:
                job.timing.scheduled_s = start
                del self._unscheduled[name]
        deliveries = [self._delivery(update, now) for update in updates]
        self._observer.stepped(self._engine)
        if deliveries:
            self._hand_over(deliveries)

    def _delivery(self, update: Update, now: float) -> Delivery:
        sequence, count = update.sequence, update.tokens
        job = self._jobs[sequence.request_id]
        if count:
            if job.timing.first_token_s is None:
                job.timing.first_token_s = now
            job.timing.last_token_s = now
            self._observer.advanced(sequence, count, job.timing)
        return job.outlet, News(
            job.answer,
            sequence.output_token_ids[len(sequence.output_token_ids) - count :].tolist(),
            update.text,
            [] if update.logprobs is None else [update.logprobs],
            None if update.finish_reason is None else self._end(job, update),
        )

    def _end(self, job: Job, update: Update) -> End:
        assert update.finish_reason is not None, "it has ended"
        del self._jobs[job.sequence.request_id]
        end = End(
            update.finish_reason,
            update.stopped_by,
            update.failure,
            self._recorder.take(job.sequence),
            job.timing,
        )
        self._observer.ended(job.sequence, end)
        return end

    def _failed(self, job: Job, failure: str | None) -> Delivery:
        end = End(FinishReason.ERROR, failure=failure or STOPPED, timing=job.timing)
        return job.outlet, News(job.answer, end=end)
