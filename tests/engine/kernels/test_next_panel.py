from typing import Any

import numpy as np
import pytest

from outrider.engine.kernels.next_panel import panel_after
from outrider.engine.kernels.team import new_counters, own_range

Array = np.ndarray[Any, np.dtype[Any]]


def panels(count: int, first: int = 0) -> Array:
    """Panels that hold their numbers."""
    numbers = np.arange(first, first + count, dtype=np.uint16)
    return np.repeat(numbers, 8).reshape(count, 2, 4)


def after(thread: int, p: int, following: Array) -> int:
    return int(panel_after(new_counters(1, 3), thread, panels(10), p, following)[0, 0])


@pytest.mark.parametrize("thread", range(3))
def test_a_thread_goes_through_its_own_range_and_then_begins_that_of_what_follows(
    thread: int,
) -> None:
    first, count = own_range(10, 3, thread)
    following = panels(7, first=100)
    begun = 100 + own_range(7, 3, thread)[0]
    seen = [after(thread, p, following) for p in range(first, first + count)]
    assert seen == [*range(first + 1, first + count), begun]


def test_after_a_panel_of_another_thread_comes_what_follows() -> None:
    assert after(0, 9, panels(7, first=100)) == 100
    assert after(2, 0, panels(7, first=100)) == 104


def test_where_nothing_follows_the_last_panel_itself_stands_for_it() -> None:
    assert after(2, 9, panels(0)) == 9
    assert after(0, 9, panels(0)) == 9
