"""Threads that run a pass side by side with their caller."""

import weakref
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

Work = tuple[Callable[..., Any], tuple[Any, ...]]


class KernelThreads:
    """So many threads that wait for work; they end when nobody holds this any longer.

    Nothing comes back, neither a result nor a sign that a thread is done: between two passes, when
    caches hold other things, the future of an executor takes 45 µs more until each thread begins.
    """

    def __init__(self, count: int) -> None:
        self._waiting: list[SimpleQueue[Work | None]] = [SimpleQueue() for _ in range(count)]
        for queue in self._waiting:
            Thread(target=_serve, args=(queue,), name="outrider-kernel", daemon=True).start()
        weakref.finalize(self, _dismiss, self._waiting)

    def run(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Let thread i, from 1 on, call `function(i, *arguments)`, which must not raise."""
        for i, queue in enumerate(self._waiting, start=1):
            queue.put((function, (i, *arguments)))


def _serve(queue: "SimpleQueue[Work | None]") -> None:
    while (work := queue.get()) is not None:
        function, arguments = work
        function(*arguments)
        del work, function, arguments  # what they refer to is not kept while waiting


def _dismiss(waiting: "list[SimpleQueue[Work | None]]") -> None:
    for queue in waiting:
        queue.put(None)
