"""Dividing a region of work among threads, such that no thread waits for one that is not running.

Threads run the same function side by side. At each region they take pieces from a shared counter,
first from their own range, then from the others', and go on when all pieces are done. A thread that
the operating system has paused, or that has not begun, just leaves its pieces to the others; in a
fork and join of OpenMP every region waits for it, which on shared cores costs a time slice each.
"""

import sys
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from outrider.engine.compiling import compiled

_LINE = 8
"""int64 counters in one cache line; each counter has a line of its own."""

_SPINS_BEFORE_YIELD = 2_000

_yield_core = types.ExternalFunction(
    "SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32()
)


def new_counters(regions: int, threads: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Counters for one run: for each region the pieces taken from each range, and those done."""
    return np.zeros((regions, threads + 1, _LINE), np.int64)


@intrinsic
def _add(_typing: Any, counters: Any, index: Any, amount: Any) -> Any:
    """Adds to the flat counter at `index` and returns what it held; orders memory both ways."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.atomic_rmw("add", builder.gep(array.data, [args[1]]), args[2], "acq_rel")

    return types.int64(counters, types.intp, types.int64), codegen


@intrinsic
def _load(_typing: Any, counters: Any, index: Any) -> Any:
    """Reads the flat counter at `index`; later reads see what was written before it was set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.load_atomic(builder.gep(array.data, [args[1]]), "acquire", 8)

    return types.int64(counters, types.intp), codegen


@compiled()
def own_range(pieces: int, threads: int, thread: int) -> Any:
    """The first of the pieces that a thread takes before others, and their number."""
    first = pieces * thread // threads
    return first, pieces * (thread + 1) // threads - first


@compiled()
def take(counters: Any, region: int, thread: int, pieces: int) -> Any:
    """A piece of `region` that nobody has taken, from this thread's range first; -1 if none is."""
    ranges = counters.shape[1] - 1
    for offset in range(ranges):
        owner = (thread + offset) % ranges
        first, size = own_range(pieces, ranges, owner)
        index = (region * (ranges + 1) + owner) * _LINE
        if _load(counters, index) < size:
            piece = _add(counters, index, 1)
            if piece < size:
                return first + piece
    return -1


@compiled()
def finish(counters: Any, region: int) -> None:
    """Tells that one taken piece of `region` is done."""
    ranges = counters.shape[1] - 1
    _add(counters, (region * (ranges + 1) + ranges) * _LINE, 1)


@compiled()
def is_done(counters: Any, region: int, pieces: int) -> Any:
    """Whether all `pieces` of `region` are done."""
    ranges = counters.shape[1] - 1
    return _load(counters, (region * (ranges + 1) + ranges) * _LINE) >= pieces


@compiled()
def wait(counters: Any, region: int, pieces: int) -> None:
    """Returns when all `pieces` of `region` are done."""
    ranges = counters.shape[1] - 1
    index = (region * (ranges + 1) + ranges) * _LINE
    spins = 0
    while _load(counters, index) < pieces:
        spins += 1
        if spins > _SPINS_BEFORE_YIELD:
            _yield_core()
            spins = 0
