import sys
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from outrider.engine.compiling import uncounted

Array = np.ndarray[Any, np.dtype[Any]]


class Pair(NamedTuple):
    """Arrays beside a number, as the arguments of the kernels have them."""

    left: Array
    right: Array
    factor: float


@njit  # type: ignore[untyped-decorator]  # numba has no types
def weighted(counts: Array, pair: Pair) -> float:
    counts, pair = uncounted((counts, pair))
    counts[0] += 1
    view = pair.right[1:]
    return float((pair.left[0] + view[0]) * pair.factor)


def test_uncounted_arrays_are_the_callers_own_whose_references_stay_as_they_were() -> None:
    counts, left, right = np.zeros(1, np.int64), np.full(2, 3.0), np.arange(2.0)
    references = [sys.getrefcount(array) for array in (counts, left, right)]
    for _ in range(1_000):
        assert weighted(counts, Pair(left, right, 2.0)) == 8.0
    assert counts[0] == 1_000
    assert [sys.getrefcount(array) for array in (counts, left, right)] == references
