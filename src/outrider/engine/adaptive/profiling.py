"""Measures what steps cost on this machine, before any request has come."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from outrider.engine.adaptive.cost_curve import CONTEXT_TOKENS, CostCurve
from outrider.engine.models.base import BLOCK_TOKENS, Rows, TargetModel, blocks_for

ROW_COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 17, 24, 32, 33, 48, 64, 96, 128, 192, 256)
"""Sizes at which a step is timed; kernels cost the more per row the fewer rows there are, and tile
registers take 16 rows at once."""

MANY_REQUESTS = 16
"""So many requests at most, of one row each, are compared with as many rows of one request."""

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
    steps = [one_request(model, size, room) for size in sizes]
    fitting = model.num_blocks // blocks_for(CONTEXT_TOKENS + 1)
    fitting = min(MANY_REQUESTS, fitting) if model.max_length > CONTEXT_TOKENS else 0
    requests = max((size for size in sizes if size <= fitting), default=0)
    if requests > 1:
        steps.append(many_requests(model, requests))
    for rows in steps:
        _run(model, rows)  # compiles, touches the memory
    taken = np.zeros((repeats, len(steps)))
    for times in taken:
        # Interleaved, so that a busy moment of the machine meets all sizes alike.
        for place, rows in enumerate(steps):
            start = clock()
            _run(model, rows)
            times[place] = clock() - start
    seconds = typical(taken).tolist()
    measured_s = dict(zip(sizes, seconds, strict=False))
    if requests <= 1:
        return CostCurve.of(measured_s)
    further_s, further_tokens = seconds[-1] - measured_s[requests], (requests - 1) * CONTEXT_TOKENS
    return CostCurve.of(measured_s, cached_token_s=max(further_s, 0.0) / further_tokens)


def typical(taken: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each size [S] the median of `taken` [R, S], in rounds brought to one speed.

    A round in which all sizes took longer than usual tells of the machine, not of them.
    """
    slowness = np.median(taken / np.median(taken, axis=0), axis=1, keepdims=True)
    found: NDArray[np.float64] = np.median(taken / slowness, axis=0)
    return found


def one_request(model: TargetModel, count: int, room: int) -> Rows:
    """Return `count` rows of one request, with a context in so much room of the cache."""
    start = max(0, min(CONTEXT_TOKENS, room - count))
    blocks = range(blocks_for(start + count))
    token = 1 % model.config.vocab_size
    return Rows([token] * count, range(start, start + count), [0] * count, [blocks], range(count))


def many_requests(model: TargetModel, count: int) -> Rows:
    """Return a row each of `count` requests, none of whose `CONTEXT_TOKENS` are shared."""
    size = blocks_for(CONTEXT_TOKENS + 1)
    tables = [range(at * size, (at + 1) * size) for at in range(count)]
    token = 1 % model.config.vocab_size
    return Rows([token] * count, [CONTEXT_TOKENS] * count, range(count), tables, range(count))


def _run(model: TargetModel, rows: Rows) -> None:
    """Run a step to its end: a GPU still computes when `forward` returns, until a value is read."""
    float(model.forward(rows)[0, 0])
