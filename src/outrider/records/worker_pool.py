"""Processes that share the work of this one."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context

_WATCH_S = 0.5


@contextmanager
def worker_pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with this one, however it ends, and leave Ctrl-C to it."""
    # A fresh interpreter: a copy of this one would have its threads' locks and none of its threads.
    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=end_with_parent, initargs=(os.getpid(),)
    )
    try:
        yield pool
    except BaseException:
        for process in active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def end_with_parent(parent: int) -> None:
    """Watch from a thread for the end of the parent process, and end then."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def interrupt_blocked() -> Iterator[None]:
    """Have the processes that are started in here never hear of Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
