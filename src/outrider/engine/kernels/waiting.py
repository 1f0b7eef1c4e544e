"""Waiting for the others while memory is asked for the weights that come next.

Memory is what a step of few rows waits for, and it rests while threads attend, norm or wait for
each other. A thread that waits asks for the weights of its own range of the next region, line by
line, so that they are in its cache, or on the way there, when the region begins.
"""

from typing import Any

from numba import types
from numba.extending import intrinsic

from outrider.engine.compiling import compiled
from outrider.engine.kernels.team import is_done, own_range, wait
from outrider.engine.kernels.tile_registers import element_address
from outrider.engine.kernels.vectors import bytes_after, index, prefetch

LINE_BYTES = 64
MOST_BYTES = 1 << 18
"""Asked for in one region: a cache of a core holds more, but it also holds what is in use."""
_LINES_AT_ONCE = 4


@compiled()
def wait_asking(
    counters: Any, region: int, pieces: int, thread: int, panels: Any, asked: int
) -> Any:
    """Returns when all `pieces` of `region` are done; see `wait`.

    Until then it asks for `panels` [P, lines, elements] of this thread's range, of which `asked`
    bytes have been asked for. Returns how many have been now.
    """
    first, count = own_range(panels.shape[0], counters.shape[1] - 1, thread)
    panel_bytes = panels.itemsize * panels.shape[1] * panels.shape[2]
    begin = first * panel_bytes
    most = min(count * panel_bytes, MOST_BYTES)
    while asked < most and not is_done(counters, region, pieces):
        for _ in range(_LINES_AT_ONCE):
            _ask(panels, begin + asked)
            asked += LINE_BYTES
    wait(counters, region, pieces)
    return asked


@intrinsic
def _ask(_typing: Any, panels: Any, place: Any) -> Any:
    """Ask for the line that is `place` bytes into the array."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start = element_address(context, builder, signature.args[0], args[0], index(0))
        prefetch(builder, bytes_after(builder, start, args[1]), nearness=2)
        return context.get_dummy_value()

    return types.void(panels, types.intp), codegen
