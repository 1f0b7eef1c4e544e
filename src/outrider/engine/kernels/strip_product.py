"""The product with a strip of a matrix, by the block kernel: of weights, and of keys and values."""

from typing import Any

import numpy as np

from outrider.engine.compiling import compiled
from outrider.engine.kernels.block import MOST_ROWS, inputs_per_line, multiply_block
from outrider.engine.kernels.formats.base import PANEL

PREFETCH_BYTES = 4096
"""How far ahead weights are asked for: the best of 0.5 to 8 KiB on an Ice Lake Xeon."""

_NEAR_BYTES = 16_384
"""Half of the smallest nearest cache: weights that stay there while the rows pass by."""

ZERO, MORE = np.int64(0), np.int64(1)
"""Not literals, for each of which numba would compile a body of its own."""


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
