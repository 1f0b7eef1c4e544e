"""Root-mean-square norms."""

from typing import Any

import numpy as np

from outrider.engine.compiling import compiled


@compiled(fastmath={"reassoc", "contract"})
def _inverse_rms(x: Any, count: int, epsilon: float) -> Any:
    """1 over the root mean square of the first `count` values of a row."""
    squares = np.float32(0.0)
    for i in range(count):
        squares += x[i] * x[i]
    return np.float32(1.0) / np.sqrt(squares / np.float32(count) + epsilon)


@compiled(fastmath={"contract"})
def rms_norm(x: Any, weight: Any, epsilon: float, out: Any) -> None:
    """The norm of each row of `x` [R, H] into `out`, which may be `x`."""
    size = weight.shape[0]
    for r in range(x.shape[0]):
        scale = _inverse_rms(x[r], size, epsilon)
        for i in range(size):
            out[r, i] = x[r, i] * scale * weight[i]


@compiled(fastmath={"contract"})
def add_norm(branch: Any, weight: Any, epsilon: float, x: Any) -> None:
    """Adds the norm of `branch` to `x` [H]; what `branch` holds beyond H values is padding."""
    size = weight.shape[0]
    scale = _inverse_rms(branch, size, epsilon)
    for i in range(size):
        x[i] += branch[i] * scale * weight[i]
