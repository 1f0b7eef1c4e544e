"""Weights packed for the block kernel, and the product with them that decides decoding speed.

A weight matrix [N, K] is stored as panels [K, PANEL] of `PANEL` outputs each, so that one pass
over a panel reads memory in order and multiplies it with several rows at once. bfloat16 weights
are widened to float32 in registers: half the memory traffic of float32, on any CPU, with float32
activations and sums.
"""

from typing import Any

import numpy as np
import torch

from outrider.engine.compiling import compiled
from outrider.engine.kernels.block import LANES, SUM_VECTORS, multiply_block

PANEL = 2 * LANES
"""Outputs in one panel."""

PREFETCH_BYTES = 4096
"""How far ahead weights are asked for: the best of 0.5 to 8 KiB on an Ice Lake Xeon."""

_NEAR_BYTES = 16_384
"""Half of the smallest nearest cache: weights that stay there while the rows pass by."""

ZERO, MORE = np.int64(0), np.int64(1)
"""Not literals, for each of which numba would compile a body of its own."""

_MAX_ROWS = SUM_VECTORS // 2


def pack(weight: torch.Tensor, dtype: torch.dtype) -> np.ndarray[Any, np.dtype[Any]]:
    """Packs a weight [N, K] into panels [ceil(N / PANEL), K, PANEL] of float32, zero-padded.

    In bfloat16 a panel is [K, LANES] of uint32: output j in the low half of number j, output
    j + LANES in the high one, so that one load gives two vectors and a step each to widen them.
    """
    outputs, depth = weight.shape
    panels = -(-outputs // PANEL)
    padded = torch.zeros(panels * PANEL, depth, dtype=dtype)
    padded[:outputs] = weight
    packed = padded.view(panels, PANEL, depth).transpose(1, 2).contiguous()
    if dtype == torch.bfloat16:
        halves = (
            packed.view(torch.int16).view(panels, depth, 2, LANES).transpose(-1, -2).contiguous()
        )
        packed = halves.view(torch.int32).squeeze(-1).view(torch.uint32)
    array: np.ndarray[Any, np.dtype[Any]] = packed.numpy()
    return array


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
    step = depth
    if rows > _MAX_ROWS:
        step = min(depth, np.int64(_NEAR_BYTES // (4 * min(matrix.shape[1], PANEL))))
    for start in range(0, depth, step):
        part, count = matrix[start:], min(step, depth - start)
        begun = more + start > 0
        row, ahead = 0, np.int64(PREFETCH_BYTES)
        while row < rows:
            blocks = -(-(rows - row) // _MAX_ROWS)
            size = -(-(rows - row) // blocks)
            at = x_column + start
            multiply_block(
                part, column, count, x, row, at, out, row, out_column, size, 2, begun, ahead
            )
            row += size
            ahead = goes_on * count * 4 * matrix.shape[1]


@compiled(inline=True)
def panel_product(panel: Any, x: Any, out: Any, column: int) -> None:
    """`out[:, column : column + PANEL] = x @ panel`.

    `panel` is one of those that `pack` makes, `x` [R, K] and `out` [R, C] are float32. The panel
    that follows it in memory is taken to be the next.
    """
    strip_product(panel, ZERO, x.shape[1], x, ZERO, out, np.int64(column), ZERO, MORE)
