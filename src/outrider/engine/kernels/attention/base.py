"""What a format of cached keys and values is, and what attention has in common in all of them."""

from typing import Any, Protocol

import numpy as np

from outrider.engine.compiling import compiled
from outrider.engine.kernels.arguments import SPAN
from outrider.engine.kernels.formats.base import PANEL


class CacheFormat(Protocol):
    """How the keys and values of one head lie in a block of `SPAN` tokens.

    Compiled code knows the format of an array by the type of its elements alone.
    """

    stored: type[np.generic]

    def key_shape(self, size: int) -> tuple[int, ...]:
        """The shape of a head's keys, each of `size` numbers."""
        ...

    def value_shape(self, size: int) -> tuple[int, ...]:
        """The shape of a head's values, each of `size` numbers."""
        ...


@compiled()
def most_scratch(chunks: Any, positions: Any, group: int, size: int) -> Any:
    """How many float32 of scratch the largest of `chunks` [C + 1] takes, see `Batch`.

    Rows at `positions` [R] have `group` queries each for one head of `size` numbers.
    """
    most = 0
    for c in range(len(chunks) - 1):
        queries = (chunks[c + 1] - chunks[c]) * group
        most = max(most, scratch_numbers(queries, positions[chunks[c + 1] - 1] + 1, size))
    return most


@compiled(inline=True)
def scratch_numbers(queries: int, tokens: int, size: int) -> Any:
    """How many float32 of scratch `queries` heads of `size` take that see `tokens` cached ones.

    Enough for every format.
    """
    whole = size + -size % PANEL
    # One block more than the tokens fill: they may begin anywhere in a block.
    return queries * (2 * score_line(tokens // SPAN + 2) + 3 * whole)


@compiled(inline=True)
def score_line(blocks: int) -> Any:
    """How many numbers apart the scores of two queries are that see so many blocks.

    Not a power of two, at which all rows would take the same few places of a cache.
    """
    return blocks * SPAN + PANEL


@compiled()
def seen_tokens(positions: Any, window: int) -> Any:
    """Which tokens rows at ascending `positions` see: from `starts` to `ends`, by row.

    Both are counted from the beginning of the first block that any of them sees, whose number comes
    third.
    """
    ends = positions + 1
    starts = np.zeros_like(ends)
    if window:
        starts[:] = np.maximum(ends - window, 0)
    first_block = starts[0] // SPAN
    starts -= first_block * SPAN
    ends -= first_block * SPAN
    return starts, ends, first_block


@compiled()
def gather_queries(heads: Any, first: int, g: int, group: int, x: Any) -> None:
    """The queries of cache head `g` in the rows of `heads` from `first` on, into `x` [queries, D].

    Each row has `group` of them side by side; `x` has them row by row.
    """
    queries, size = x.shape
    for q in range(queries):
        column = (g * group + q % group) * size
        for i in range(size):
            x[q, i] = heads[first + q // group, column + i]


@compiled()
def scatter_results(
    result: Any, totals: Any, size: int, first: int, g: int, group: int, out: Any
) -> None:
    """The way back: `result` [queries, at least D] into the rows of `out` from `first` on.

    What the weights of each query add up to, `totals` [queries], is divided by here.
    """
    for q in range(result.shape[0]):
        column = (g * group + q % group) * size
        share = np.float32(1.0) / totals[q]
        for i in range(size):
            out[first + q // group, column + i] = result[q, i] * share
