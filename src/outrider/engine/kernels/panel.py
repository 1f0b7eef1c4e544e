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
def panel_product(panel: Any, x: Any, out: Any, column: int) -> None:
    """`out[:, column : column + PANEL] = x @ panel`, in even blocks of rows.

    `panel` is one of those that `pack` makes, `x` [R, K] and `out` [R, C] are float32.
    """
    rows, depth = x.shape
    row = 0
    while row < rows:
        blocks = -(-(rows - row) // _MAX_ROWS)
        size = -(-(rows - row) // blocks)
        multiply_block(panel, 0, depth, x, row, 0, out, row, column, size, 2)
        row += size
