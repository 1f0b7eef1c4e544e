"""Files spread over a Ray cluster; nothing else knows Ray."""

import logging
import pickle
import signal
import socket
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

from outrider.errors import InvalidSetting, NoCluster
from outrider.replay.workplaces.base import Replayed, Work
from outrider.replay.workplaces.log_files import LogFile
from outrider.replay.workplaces.spreading import Lost, Parts, replay_file, spread

BY_NAME = ("auto", "local")
"""A cluster that runs on this machine, and one that is started for this run alone."""
_ANSWERS_WITHIN_S = 5.0
_ATTEMPTS = 3
_MOST_SHOWN = 160


@dataclass(frozen=True, slots=True)
class OnRay:
    """A cluster by its address: HOST:PORT, ray://HOST:PORT, or one of `BY_NAME`.

    Each task replays one file, which its node has to see by the same name, and takes as many CPUs
    as a part has threads. Its memory and what it returns do not depend on the file's length.
    """

    address: str

    def replay(self, work: Work, sources: Sequence[str]) -> Replayed:
        """Replay each file by itself; UnreadableSource where a name is that of nothing.

        Raises InvalidSetting where Ray is not installed or no node has the CPUs that a task takes,
        NoCluster where no cluster answers or what answers cannot do the work.
        """
        with _cluster(self.address) as ray:
            try:
                return spread(work, sources, partial(_parts, ray))
            except ray.exceptions.RayError as error:
                raise _unusable(self.address, error) from error


@contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """Connect, and leave the cluster whatever happens, which ends all that was begun on it."""
    try:
        import ray  # noqa: PLC0415  an optional extra
    except ImportError as error:
        raise InvalidSetting(
            f"--ray {address} without Ray", "Ray in this environment", "pip install 'outrider[ray]'"
        ) from error
    _check_answers(address)
    on_terminate = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except (OSError, RuntimeError, ValueError, ImportError) as error:
        raise _unusable(address, error) from error
    try:
        signal.signal(signal.SIGTERM, on_terminate)  # Ray has put its own there
        yield ray
    finally:
        ray.shutdown()


def _check_answers(address: str) -> None:
    """Raise NoCluster where nobody listens: Ray itself would try for minutes."""
    if address in BY_NAME:
        return
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise InvalidSetting(
            f"--ray {address}", f"HOST:PORT, ray://HOST:PORT, {' or '.join(BY_NAME)}", "correct it"
        )
    try:
        socket.create_connection((host, port), timeout=_ANSWERS_WITHIN_S).close()
    except OSError as error:
        raise _unusable(address, error) from error


def _parts(ray: Any, work: Work, files: Sequence[LogFile]) -> Parts:
    cpus = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    if work.jobs > max(cpus, default=0):
        raise InvalidSetting(
            f"--jobs {work.jobs} on a cluster whose nodes have at most {max(cpus, default=0)} CPUs",
            "a node that has as many",
            "ask for fewer",
        )
    task = ray.remote(_replayed).options(num_cpus=work.jobs, max_retries=0)
    shared = ray.put(pickle.dumps(work))
    ahead = 2 * sum(cpus) // work.jobs
    waiting: deque[tuple[LogFile, Any]] = deque()
    for file in chain(files, [None] * ahead):
        if file is not None:
            waiting.append((file, task.remote(shared, file)))
        if waiting and (file is None or len(waiting) > ahead):
            done, reference = waiting.popleft()
            yield _result(ray, task, shared, done, reference)


def _replayed(work: bytes, file: LogFile) -> bytes:
    # Arrays that Ray hands over lie in its memory, which is gone when the cluster is left.
    return pickle.dumps(replay_file(pickle.loads(work), file))  # noqa: S301  the driver's own


def _result(ray: Any, task: Any, shared: Any, file: LogFile, reference: Any) -> Replayed | Lost:
    """Wait for a file, begun again where its worker or node died."""
    deaths = (
        ray.exceptions.WorkerCrashedError,
        ray.exceptions.NodeDiedError,
        ray.exceptions.OutOfMemoryError,
        ray.exceptions.ObjectLostError,
    )
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            part: Replayed = pickle.loads(ray.get(reference))  # noqa: S301  a worker's of ours
        except deaths as error:
            cause = type(error).__name__
            if attempt < _ATTEMPTS:
                reference = task.remote(shared, file)
        else:
            return part
    return Lost(f"its worker died {_ATTEMPTS} times ({cause})")


def _unusable(address: str, error: Exception) -> NoCluster:
    # What a task raised stands at the end, below the cluster's own traces.
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    cause = (lines[-1] if lines else type(error).__name__)[:_MOST_SHOWN]
    return NoCluster(
        f"--ray {address} cannot be used ({cause})",
        "a running Ray cluster with this version of Outrider on every node",
        "check the address and what is installed there, or leave --ray out",
    )
