"""Asking memory for the next panel in tiles while one is multiplied.

A core asks memory for most at a time where it reads in several places at once: each of them has a
page of its own, in which the hardware too asks ahead. So the lines of a panel ask for the next one,
each for its share, in `PLACES` places. What they ask for waits in the second cache, which holds
several panels wherever there are tile registers.
"""

from typing import Any

from outrider.engine.compiling import compiled
from outrider.engine.kernels.team import own_range
from outrider.engine.kernels.tile_registers import ROW_BYTES, TILE_LINE_BYTES
from outrider.engine.kernels.vectors import bytes_after, index, prefetch

PLACES = 8
_SHARE_BYTES = TILE_LINE_BYTES // PLACES
"""What a line asks for in each place."""


@compiled()
def panel_after(counters: Any, thread: int, panels: Any, p: int, following: Any) -> Any:
    """Return the panel that this thread is likely to need after number `p` of `panels`.

    That is the next of its own range (see `team`), or the first of that in the panels `following`,
    which are of the same format and may be none.
    """
    threads = counters.shape[1] - 1
    first, count = own_range(panels.shape[0], threads, thread)
    if first <= p < first + count - 1:
        return panels[p + 1]
    if following.shape[0] > 0:
        return following[own_range(following.shape[0], threads, thread)[0]]
    return panels[p]


def ask_ahead(builder: Any, following: Any, lines: Any, line: Any, place: Any) -> None:
    """Emit the requests for the share of `line`, of `lines`, in one of the `PLACES`.

    `following` is the address of what is needed next: as many bytes as the panel itself has.
    """
    begin = builder.mul(builder.add(builder.mul(lines, place), line), index(_SHARE_BYTES))
    for at in range(0, _SHARE_BYTES, ROW_BYTES):
        address = bytes_after(builder, following, builder.add(begin, index(at)))
        prefetch(builder, address, nearness=2)
