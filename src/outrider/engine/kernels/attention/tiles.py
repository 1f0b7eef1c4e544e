"""Keys and values in bfloat16, on tile registers.

Blocks of keys and values are panels of weights, with which queries and the weights of values are
multiplied as activations are, in two parts. A score is one sum over the head, an output one for
each part over the tokens in order, from block to block; a token that a row does not see adds 0.
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
from outrider.engine.kernels.attention.tile_sums import score_block, sum_values, weigh
from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.formats.tiles import (
    DEPTH,
    PARTS,
    TILE_OUTPUTS,
    place_in_line,
)
from outrider.engine.kernels.tile_product import in_parts, rows_of_block

_EXPONENT = np.uint16(0x7F80)
_NO_NUMBER = np.uint16(0x7FC0)


class BFloat16TileCache:
    """Panels as those of `BFloat16Tiles`.

    Of keys [SPAN / PANEL, D / DEPTH, elements] the inputs are the numbers of a head, the outputs
    tokens; of values [D / PANEL, SPAN / DEPTH, elements] the inputs are tokens.
    """

    stored: type[np.generic] = np.uint16

    def key_shape(self, size: int) -> tuple[int, ...]:
        """See `CacheFormat.key_shape`."""
        return SPAN // PANEL, -(-size // DEPTH), DEPTH * PANEL

    def value_shape(self, size: int) -> tuple[int, ...]:
        """See `CacheFormat.value_shape`."""
        return -(-size // PANEL), SPAN // DEPTH, DEPTH * PANEL


def store_in_tiles(cache: Any, heads: Any, table: Any, position: int) -> None:
    """See `store_heads`; rounds to the nearest.

    A product multiplies values with 0 for rows that do not see them, so they have to be finite. One
    that is not is kept as 0 in favour of a key that is no number, which says the same to the rows
    that do see it.
    """
    block, place = table[position // SPAN], position % SPAN
    kv_heads, size = cache.keys.shape[1], heads.shape[1]
    first = heads.shape[0] - 2 * kv_heads
    numbers = np.empty((2 * kv_heads, size), np.uint16)
    _round(heads[first:].view(np.uint32), numbers)
    for g in range(kv_heads):
        key, value = numbers[g], numbers[kv_heads + g]
        if not _only_finite(value):
            key[0] = _NO_NUMBER
        # The numbers of a pair stand side by side, those of the next pair a row of the tile on.
        keys = cache.keys[block, g, place // PANEL]
        at = place_in_line(place % PANEL, 0)
        for d in range(size):
            keys[d // DEPTH, at + d % DEPTH // 2 * DEPTH + d % 2] = key[d]
        values = cache.values[block, g]
        for d in range(0, size, TILE_OUTPUTS):
            line = values[d // PANEL, place // DEPTH]
            at = place_in_line(d % PANEL, place % DEPTH)
            for i in range(min(TILE_OUTPUTS, size - d)):
                line[at + 2 * i] = value[d + i]


@compiled()
def _round(bits: Any, numbers: Any) -> None:
    """The bits of float32 as those of the nearest bfloat16, of two as near the even one."""
    for row in range(bits.shape[0]):
        source, target = bits[row], numbers[row]
        for i in range(source.shape[0]):
            held = source[i]
            odd = held >> np.uint32(16) & np.uint32(1)
            near = np.uint16(held + np.uint32(0x7FFF) + odd >> np.uint32(16))
            exists = held & np.uint32(0x7FFFFFFF) <= np.uint32(0x7F800000)
            target[i] = near if exists else _NO_NUMBER


@compiled()
def _only_finite(numbers: Any) -> Any:
    """Whether all numbers are finite; those that are not become 0."""
    finite = True
    for i in range(numbers.shape[0]):
        if numbers[i] & _EXPONENT == _EXPONENT:
            finite = False
            numbers[i] = 0
    return finite


def attend_in_tiles(
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
    group = out.shape[1] // (size * cache.keys.shape[1])
    queries = (end - first) * group
    starts, ends, first_block = seen_tokens(positions[first:end], window)
    blocks = -(-ends[-1] // SPAN)
    panels = cache.values.shape[2]
    line, width, depth = score_line(blocks), panels * PANEL, size + -size % DEPTH

    room = queries * line
    scores = scratch[:room].reshape(queries, line)
    # A number in two parts takes as much as one in float32.
    weights = scratch[room : 2 * room].view(np.uint16).reshape(PARTS, queries, line)
    room *= 2
    result = scratch[room : room + queries * width].reshape(queries, width)
    room += queries * width
    x = scratch[room : room + queries * size].reshape(queries, size)
    room += queries * (size + -size % PANEL)
    inputs = scratch[room : room + queries * depth].view(np.uint16)

    gather_queries(heads, first, g, group, x)
    parts = in_parts(x, inputs)
    together = rows_of_block(queries)
    table = table[first_block : first_block + blocks]
    for start in range(0, queries, together):
        row = min(start, queries - together)
        for b in range(blocks):
            score_block(cache.keys[table[b], g], parts, row, scores, b * SPAN)
    totals = np.empty(queries, np.float32)
    for q in range(queries):
        totals[q] = weigh(scores, q, starts[q // group], ends[q // group], scale, weights)
    for start in range(0, queries, together):
        row = min(start, queries - together)
        sum_values(cache.values, g, table, weights, row, together, result)
    scatter_results(result, totals, size, first, g, group, out)
