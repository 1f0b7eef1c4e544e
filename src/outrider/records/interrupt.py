"""Ctrl-C, kept waiting until what must not be cut in two is done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupt_held() -> Iterator[None]:
    """Finish the block first; a Ctrl-C that came meanwhile is raised after it.

    In another thread than the main one, which never sees Ctrl-C, there is nothing to do.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if held:
            signal.raise_signal(signal.SIGINT)
