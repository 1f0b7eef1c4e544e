"""The gated first half of an MLP."""

from typing import Any

import numpy as np

from outrider.engine.compiling import compiled
from outrider.engine.kernels.exponential import exponentiate
from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.panel import panel_product

_TWICE_ROOT = np.float32(2.0 * (2.0 / np.pi) ** 0.5)
_CUBIC = np.float32(0.044715)


@compiled(fastmath={"contract"})
def gated_product(
    gate: Any,
    up: Any,
    inputs: Any,
    gelu: bool,  # noqa: FBT001
    scratch: Any,
    out: Any,
    column: int,
) -> None:
    """`activation(inputs @ gate) * (inputs @ up)` into a panel of `out` [R, I], from `column` on.

    Both activations are x / (1 + exp(-z)): SiLU with z = x; GELU, in the tanh form, with z =
    sqrt(8 / pi) (x + 0.044715 x^3), since 1 + tanh(z / 2) = 2 / (1 + exp(-z)). `scratch` is [R, 3
    PANEL].
    """
    panel_product(gate, inputs, scratch, 0)
    panel_product(up, inputs, scratch, PANEL)
    for r in range(out.shape[0]):
        if gelu:
            for i in range(PANEL):
                x = scratch[r, i]
                scratch[r, 2 * PANEL + i] = -_TWICE_ROOT * (x + _CUBIC * x * x * x)
        else:
            for i in range(PANEL):
                scratch[r, 2 * PANEL + i] = -scratch[r, i]
        exponentiate(scratch, r, 2 * PANEL, PANEL)
        for i in range(min(PANEL, out.shape[1] - column)):
            activated = scratch[r, i] / (np.float32(1.0) + scratch[r, 2 * PANEL + i])
            out[r, column + i] = activated * scratch[r, PANEL + i]
