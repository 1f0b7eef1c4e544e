import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from outrider.engine.kernels.team import finish, new_counters, own_range
from outrider.engine.kernels.waiting import LINE_BYTES, MOST_BYTES, wait_asking

Array = np.ndarray[Any, np.dtype[Any]]


def panels(count: int, lines: int, dtype: type[np.generic] = np.uint16) -> Array:
    return np.zeros((count, lines, 1024), dtype)


def test_what_is_done_is_not_waited_for_and_nothing_is_asked() -> None:
    counters = new_counters(1, 2)
    for _ in range(3):
        finish(counters, 0)
    assert wait_asking(counters, 0, 3, 0, panels(4, 1), 128) == 128


@pytest.mark.parametrize("dtype", [np.uint16, np.float32, np.uint32])
def test_no_more_is_asked_for_than_a_threads_own_range(dtype: type[np.generic]) -> None:
    weights = panels(5, 3, dtype)
    panel_bytes = weights[0].nbytes
    for thread, count in ((0, 2), (1, 3)):
        assert own_range(5, 2, thread)[1] == count
        assert asked_until_done(weights, thread) == count * panel_bytes


def test_of_many_weights_a_part_is_asked_for() -> None:
    assert asked_until_done(panels(600, 2), 0) == MOST_BYTES
    assert MOST_BYTES % LINE_BYTES == 0


def asked_until_done(weights: Array, thread: int) -> int:
    """What one of two threads asks for while the other takes its time."""
    done = new_counters(1, 2)
    finish(done, 0)
    wait_asking(done, 0, 1, thread, weights, 0)  # compiles, which takes longer than the other

    counters = new_counters(1, 2)
    waiting = threading.Event()

    def wait() -> int:
        waiting.set()
        asked: int = wait_asking(counters, 0, 1, thread, weights, 0)
        return asked

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(wait)
        waiting.wait()
        with pytest.raises(TimeoutError):
            found.result(timeout=0.3)
        finish(counters, 0)
        return found.result(timeout=60)
