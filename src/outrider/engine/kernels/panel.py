"""Weights packed for the block kernel, and the product with them that decides decoding speed.

A weight matrix [N, K] is stored as panels [K, PANEL] of `PANEL` outputs each, so that one pass
over a panel reads memory in order and multiplies it with several rows at once. Whatever format they
have in memory, weights become float32 in registers, and activations and sums are float32.
"""

from typing import Any

import numpy as np
import torch
from numba.extending import overload

from outrider.engine.compiling import compiled
from outrider.engine.kernels.block import MOST_ROWS, as_float32, inputs_per_line, multiply_block
from outrider.engine.kernels.formats.base import PANEL, Array, WeightFormat
from outrider.engine.kernels.formats.tiles import (
    DEPTH,
    BFloat16Tiles,
    in_parts,
    place_in_tiles,
    release,
    tile_product,
)

PREFETCH_BYTES = 4096
"""How far ahead weights are asked for: the best of 0.5 to 8 KiB on an Ice Lake Xeon."""

_NEAR_BYTES = 16_384
"""Half of the smallest nearest cache: weights that stay there while the rows pass by."""

_PACKED_PANELS = 64

ZERO, MORE = np.int64(0), np.int64(1)
"""Not literals, for each of which numba would compile a body of its own."""


def pack(weight: torch.Tensor, weight_format: WeightFormat) -> Array:
    """Pack a weight [N, K] as ceil(N / PANEL) panels, zero-padded: [panels, lines, elements].

    A few at a time, since the whole of a large one would take several times its memory.
    """
    parts = []
    for first in range(0, len(weight), _PACKED_PANELS * PANEL):
        part = weight[first : first + _PACKED_PANELS * PANEL]
        padded = torch.zeros(len(part) + -len(part) % PANEL, weight.shape[1])
        padded[: len(part)] = part
        panels = padded.view(-1, PANEL, weight.shape[1]).transpose(1, 2)
        parts.append(weight_format.pack(panels))
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


@compiled()
def strip_product(
    matrix: Any,
    column: Any,
    depth: Any,
    x: Any,
    x_column: Any,
    out: Any,
    out_column: Any,
    more: Any,
    goes_on: Any,
) -> None:
    """`PANEL` columns of `out` = `depth` columns of `x` times a strip of `matrix`.

    For all rows, in even blocks of them; numbers are int64. `more` is `MORE` where the sums go on
    from what `out` holds, else `ZERO`; see `multiply_block`. Many rows take as much of the matrix
    at a time as the nearest cache holds. From the second block of rows on memory is free for what
    follows, which is asked for where `goes_on` is `MORE`: what is needed next lies behind.
    """
    rows = x.shape[0]
    per_line = inputs_per_line(matrix)
    line_bytes = matrix.itemsize * matrix.shape[1]
    step = depth
    if rows > MOST_ROWS:
        strip_bytes = min(line_bytes, 4 * PANEL * per_line)
        step = min(depth, np.int64(_NEAR_BYTES // strip_bytes * per_line))
    for start in range(0, depth, step):
        part, count = matrix[start // per_line :], min(step, depth - start)
        begun = more + start > 0
        row, ahead = 0, np.int64(PREFETCH_BYTES)
        while row < rows:
            blocks = -(-(rows - row) // MOST_ROWS)
            size = -(-(rows - row) // blocks)
            at = x_column + start
            multiply_block(
                part, column, count, x, row, at, out, row, out_column, size, begun, ahead
            )
            row += size
            ahead = goes_on * (count // per_line) * line_bytes


def _by_format(in_lines: Any, in_tiles: Any) -> Any:
    """A function for compiled code: `in_tiles` where its first argument has tiles, or `in_lines`."""

    def function(*_args: Any) -> Any:
        raise NotImplementedError("for compiled code")

    overload(function, strict=False)(
        lambda panels, *_args: in_tiles if panels.dtype == BFloat16Tiles.stored else in_lines
    )
    return function


_room = _by_format(
    lambda _panels, _rows, _depth: np.empty(0, np.uint16),
    lambda _panels, rows, depth: np.empty(2 * rows * (depth + -depth % DEPTH), np.uint16),
)
_prepare = _by_format(lambda _panels, x, _room: x, lambda _panels, x, room: in_parts(x, room))
_multiply = _by_format(
    lambda panel, x, out, column: strip_product(
        panel, ZERO, x.shape[1], x, ZERO, out, np.int64(column), ZERO, MORE
    ),
    lambda panel, parts, out, column: tile_product(panel, parts, out, column),
)
_put_away = _by_format(lambda _panels: None, lambda _panels: release())


@compiled(inline=True)
def room_for(panels: Any, rows: int, depth: int) -> Any:
    """Return the room that `prepared` needs for `rows` inputs of up to `depth` numbers."""
    return _room(panels, rows, depth)


@compiled(inline=True)
def prepared(panels: Any, x: Any, room: Any) -> Any:
    """Return `x` [R, K] float32 as `panel_product` takes it for these `panels`, perhaps in `room`.

    It holds until the room is used again. The thread that calls it also makes the products.
    """
    return _prepare(panels, x, room)


@compiled(inline=True)
def panel_product(panel: Any, inputs: Any, out: Any, column: int) -> None:
    """`out[:, column : column + PANEL] = x @ panel`.

    `panel` is one of those that `pack` makes, `inputs` are x [R, K] as `prepared` for it, and `out`
    [R, C] is float32. The panel that follows in memory is taken to be the next.
    """
    _multiply(panel, inputs, out, column)


@compiled(inline=True)
def put_away(panels: Any) -> None:
    """End this thread's products with `panels` for now."""
    _put_away(panels)


@compiled()
def _in_line(panels: Any, output: Any, k: Any) -> Any:
    half, lane = output % PANEL // panels.shape[2], output % PANEL % panels.shape[2]
    return as_float32(panels[output // PANEL, k, lane], half)


@compiled()
def _in_tile(panels: Any, output: Any, k: Any) -> Any:
    bits = panels[output // PANEL, k // DEPTH, place_in_tiles(output % PANEL, k % DEPTH)]
    return as_float32(np.uint32(bits), 0)


_stored = _by_format(
    lambda panels, output, k: _in_line(panels, output, k),
    lambda panels, output, k: _in_tile(panels, output, k),
)


@compiled(inline=True)
def stored_weight(panels: Any, output: int, k: int) -> Any:
    """Return one weight as float32; of float32 and bfloat16 panels."""
    return _stored(panels, output, k)
