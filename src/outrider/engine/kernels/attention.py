"""Attention over a paged cache, for adjacent rows of one sequence together.

The rows share loads of keys and values, but no sum: a score is one chain of fused multiply-adds
over the head, an output one over the tokens in order, from block to block, and a softmax runs over
what its own row sees. Which rows attend together, and in which blocks their tokens lie, therefore
changes no bit of a result, whatever the tokens hold that a row does not see.
"""

from typing import Any

import numpy as np

from outrider.engine.compiling import compiled
from outrider.engine.kernels.arguments import SPAN
from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.softmax import softmax
from outrider.engine.kernels.strip_product import MORE, ZERO, strip_product


def scratch_numbers(queries: Any, tokens: Any, size: int) -> Any:
    """How many numbers of scratch `queries` heads of `size` take that see `tokens` cached ones.

    Whole numbers or arrays of them, one number for each chunk.
    """
    # One block more than the tokens fill: they may begin anywhere in a block.
    return queries * ((tokens // SPAN + 2) * SPAN + 2 * size + PANEL)


@compiled()
def add_values(
    span: Any, at: int, weights: Any, group: int, starts: Any, ends: Any, out: Any
) -> None:
    """Adds to each row of `out` the values of one block that it sees, by their weights.

    `span` [SPAN, columns] holds the values of the tokens from `at` on. `weights` [queries, tokens]
    and `out` [queries, columns] have `group` rows for each of `starts` and `ends` (neither ever
    falls), between which those see tokens. Nothing else is read, be it not even finite.
    """
    rows = starts.shape[0]
    if starts[rows - 1] <= at and at + SPAN <= ends[0]:
        for column in range(0, span.shape[1], PANEL):
            strip_product(span, column, np.int64(SPAN), weights, at, out, column, MORE, ZERO)
        return
    for r in range(rows):
        low = max(starts[r] - at, 0)
        depth = min(ends[r] - at, SPAN) - low
        if depth > 0:
            own = slice(r * group, (r + 1) * group)
            for column in range(0, span.shape[1], PANEL):
                seen, sums = span[low:], out[own]
                strip_product(seen, column, depth, weights[own], at + low, sums, column, MORE, ZERO)


@compiled()
def attend(
    first: int,
    end: int,
    g: int,
    heads: Any,
    positions: Any,
    table: Any,
    cache: Any,
    window: int,
    scale: Any,
    scratch: Any,
    out: Any,
) -> None:
    """Attention of rows `first` to `end`, of one sequence, in the query heads of cache head `g`.

    `heads` [R, at least Q D] holds the queries, `out` [R, Q D] gets the results, `cache` is that of
    the layer and `table` [blocks] the sequence's; `scratch` has room for `scratch_numbers`.
    """
    size, width = cache.keys.shape[2], cache.values.shape[3]
    group = out.shape[1] // (size * cache.keys.shape[1])
    queries = (end - first) * group
    ends = positions[first:end] + 1
    starts = np.zeros_like(ends)
    if window:
        starts[:] = np.maximum(ends - window, 0)
    first_block = starts[0] // SPAN
    starts -= first_block * SPAN
    ends -= first_block * SPAN
    blocks = -(-ends[-1] // SPAN)

    room = queries * blocks * SPAN
    scores = scratch[:room].reshape(queries, blocks * SPAN)
    result = scratch[room : room + queries * width].reshape(queries, width)
    room += queries * width
    x = scratch[room : room + queries * size].reshape(queries, size)
    for q in range(queries):
        column = (g * group + q % group) * size
        for i in range(size):
            x[q, i] = heads[first + q // group, column + i]

    for b in range(blocks):
        span = cache.keys[table[first_block + b], g]
        for column in range(0, SPAN, PANEL):
            strip_product(span, column, size, x, ZERO, scores, b * SPAN + column, ZERO, ZERO)
    for q in range(queries):
        softmax(scores, q, starts[q // group], ends[q // group], scale)
    result[:] = np.float32(0.0)
    for b in range(blocks):
        span = cache.values[table[first_block + b], g]
        add_values(span, b * SPAN, scores, group, starts, ends, result)

    for q in range(queries):
        column = (g * group + q % group) * size
        for i in range(size):
            out[first + q // group, column + i] = result[q, i]
