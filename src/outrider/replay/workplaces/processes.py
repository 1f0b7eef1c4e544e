"""Files shared out among processes of this machine."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain

from outrider.records.worker_pool import interrupt_blocked, worker_pool
from outrider.replay.workplaces.base import Replayed, Work
from outrider.replay.workplaces.log_files import LogFile
from outrider.replay.workplaces.spreading import Lost, Parts, replay_file, spread


@dataclass(frozen=True, slots=True)
class Processes:
    """At least one process, each with one file at a time.

    The end of a process takes those beside it along. What they had is begun again in a process of
    its own, and a file whose process ends once more is lost.
    """

    processes: int

    def replay(self, work: Work, sources: Sequence[str]) -> Replayed:
        """Replay each file by itself; UnreadableSource where a name is that of nothing."""
        return spread(work, sources, self._parts)

    def _parts(self, work: Work, files: Sequence[LogFile]) -> Parts:
        ahead = 2 * self.processes
        waiting: deque[tuple[LogFile, Future[Replayed] | None]] = deque()
        with worker_pool(min(self.processes, max(1, len(files)))) as pool:
            for file in chain(files, [None] * ahead):
                if file is not None:
                    waiting.append((file, _submitted(pool, work, file)))
                if waiting and (file is None or len(waiting) > ahead):
                    yield _result(work, *waiting.popleft())


def _submitted(pool: ProcessPoolExecutor, work: Work, file: LogFile) -> Future[Replayed] | None:
    """Return None where the processes have ended."""
    try:
        with interrupt_blocked():
            return pool.submit(replay_file, work, file)
    except BrokenProcessPool:
        return None


def _result(work: Work, file: LogFile, future: Future[Replayed] | None) -> Replayed | Lost:
    if future is not None:
        try:
            return future.result()
        except BrokenProcessPool:
            pass
    with worker_pool(1) as alone:
        again = _submitted(alone, work, file)
        try:
            return again.result() if again else Lost("no process could be started")
        except BrokenProcessPool:
            return Lost("the process that replayed it ended twice, as for want of memory")
