"""Keys and values in float32, on vectors, for any CPU.

Rows share loads of keys and values, but no sum: a score is one chain of fused multiply-adds over
the head, an output one over the tokens in order, from block to block.
"""

from typing import Any

import numpy as np

from outrider.engine.compiling import compiled
from outrider.engine.kernels.arguments import SPAN
from outrider.engine.kernels.attention.base import (
    gather_queries,
    scatter_results,
    score_line,
    seen_tokens,
)
from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.softmax import exponentials
from outrider.engine.kernels.strip_product import MORE, ZERO, strip_product


class Float32Cache:
    """Keys [D, SPAN], so that a line has one number of every token, and values [SPAN, D]."""

    stored: type[np.generic] = np.float32

    def key_shape(self, size: int) -> tuple[int, ...]:
        """See `CacheFormat.key_shape`."""
        return size, SPAN

    def value_shape(self, size: int) -> tuple[int, ...]:
        """See `CacheFormat.value_shape`; in whole panels."""
        return SPAN, size + -size % PANEL


def store_in_vectors(cache: Any, heads: Any, table: Any, position: int) -> None:
    """See `store_heads`."""
    block, place = table[position // SPAN], position % SPAN
    kv_heads = cache.keys.shape[1]
    first = heads.shape[0] - 2 * kv_heads
    for g in range(kv_heads):
        for d in range(heads.shape[1]):
            cache.keys[block, g, d, place] = heads[first + g, d]
            cache.values[block, g, place, d] = heads[first + kv_heads + g, d]


def attend_in_vectors(
    cache: Any,
    first: int,
    end: int,
    g: int,
    size: int,
    heads: Any,
    positions: Any,
    table: Any,
    window: int,
    scale: Any,
    scratch: Any,
    out: Any,
) -> None:
    """See `attend`."""
    width = cache.values.shape[3]
    group = out.shape[1] // (size * cache.keys.shape[1])
    queries = (end - first) * group
    starts, ends, first_block = seen_tokens(positions[first:end], window)
    blocks = -(-ends[-1] // SPAN)

    room = queries * score_line(blocks)
    scores = scratch[:room].reshape(queries, score_line(blocks))
    result = scratch[room : room + queries * width].reshape(queries, width)
    room += queries * width
    x = scratch[room : room + queries * size].reshape(queries, size)
    gather_queries(heads, first, g, group, x)

    for b in range(blocks):
        span = cache.keys[table[first_block + b], g]
        for column in range(0, SPAN, PANEL):
            strip_product(span, column, size, x, ZERO, scores, b * SPAN + column, ZERO, ZERO)
    totals = np.empty(queries, np.float32)
    for q in range(queries):
        totals[q] = exponentials(scores, q, starts[q // group], ends[q // group], scale)
    result[:] = np.float32(0.0)
    for b in range(blocks):
        span = cache.values[table[first_block + b], g]
        add_values(span, b * SPAN, scores, group, starts, ends, result)

    scatter_results(result, totals, size, first, g, group, out)


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
