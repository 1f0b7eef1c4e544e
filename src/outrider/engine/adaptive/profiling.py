"""Measures what steps cost on this machine, before any request has come."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.models.base import BLOCK_TOKENS, Rows, TargetModel, blocks_for

ROW_COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 17, 24, 32, 33, 48, 64, 96, 128, 192, 256)
"""Sizes at which a step is timed; kernels cost the more per row the fewer rows there are, and tile
registers take 16 rows at once."""

CONTEXT_TOKENS = 256
"""How much each row has to attend to while it is timed."""

REPEATS = 8


def profile_steps(
    model: TargetModel, *, most_rows: int, clock: Callable[[], float], repeats: int = REPEATS
) -> CostCurve:
    """Time steps of up to `most_rows` rows, `repeats` rounds of them, and return what is typical.

    Overwrites the first blocks of the cache, so it runs before there are requests. The context is
    shortened where cache or target are too small for `CONTEXT_TOKENS`.
    """
    room = min(model.max_length, model.num_blocks * BLOCK_TOKENS)
    most = max(2, min(most_rows, room))  # a curve has two points at least
    sizes = [size for size in ROW_COUNTS if size <= most]
    for size in sizes:
        _run(model, size, room)  # compiles, touches the memory
    taken = np.zeros((repeats, len(sizes)))
    for times in taken:
        # Interleaved, so that a busy moment of the machine meets all sizes alike.
        for place, size in enumerate(sizes):
            start = clock()
            _run(model, size, room)
            times[place] = clock() - start
    return CostCurve.of(dict(zip(sizes, typical(taken).tolist(), strict=True)))


def typical(taken: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each size [S] the median of `taken` [R, S], in rounds brought to one speed.

    A round in which all sizes took longer than usual tells of the machine, not of them.
    """
    slowness = np.median(taken / np.median(taken, axis=0), axis=1, keepdims=True)
    found: NDArray[np.float64] = np.median(taken / slowness, axis=0)
    return found


def _run(model: TargetModel, size: int, room: int) -> None:
    """Run a step to its end: a GPU still computes when `forward` returns, until a value is read."""
    float(model.forward(_rows(model, size, room))[0, 0])


def _rows(model: TargetModel, count: int, room: int) -> Rows:
    start = max(0, min(CONTEXT_TOKENS, room - count))
    blocks = range(blocks_for(start + count))
    token = 1 % model.config.vocab_size
    return Rows([token] * count, range(start, start + count), [0] * count, [blocks], range(count))
