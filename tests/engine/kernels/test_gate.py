import numpy as np
import pytest
import torch
from tests.engine.kernels.arrays import random
from torch.nn import functional

from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.formats.registry import FORMATS
from outrider.engine.kernels.gate import gated_product
from outrider.engine.kernels.panel import pack


@pytest.mark.parametrize("gelu", [False, True], ids=["silu", "gelu"])
@pytest.mark.parametrize("scale", [0.5, 30])
def test_the_gated_product_is_that_of_torch_and_stays_within_its_columns(
    scale: float, gelu: bool
) -> None:
    # 7 of the second panel's columns exist; large inputs take the exponential to both its ends.
    columns = PANEL + 7
    gate, up = (torch.from_numpy(random(2 * PANEL, 20, seed=i)) for i in (1, 2))
    x = random(6, 20, scale=scale)
    out, scratch = np.full((6, columns), np.nan, np.float32), np.empty((6, 3 * PANEL), np.float32)
    for p in range(2):
        panels = pack(gate, FORMATS["float32"])[p], pack(up, FORMATS["float32"])[p]
        gated_product(*panels, panels[0], x, gelu, scratch, out, p * PANEL)
    inputs = torch.from_numpy(x).double()
    gated = inputs @ gate.double().T
    activated = functional.gelu(gated, approximate="tanh") if gelu else functional.silu(gated)
    expected = activated * (inputs @ up.double().T)
    np.testing.assert_allclose(out, expected[:, :columns], rtol=1e-4, atol=2e-5 * scale**2)
