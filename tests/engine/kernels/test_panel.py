from typing import Any

import numpy as np
import torch
from tests.engine.kernels.arrays import random

from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.formats.registry import FORMATS
from outrider.engine.kernels.panel import pack

Array = np.ndarray[Any, np.dtype[Any]]


def test_a_weight_is_packed_with_its_outputs_side_by_side() -> None:
    weight = torch.arange(float(3 * PANEL * 2)).view(3 * PANEL, 2)
    packed = pack(weight, FORMATS["float32"])
    assert packed.shape == (3, 2, PANEL)
    for output, k in ((0, 0), (1, 0), (PANEL, 1), (2 * PANEL + 5, 1)):
        assert packed[output // PANEL, k, output % PANEL] == weight[output, k]


def test_a_last_panel_is_filled_with_zeros() -> None:
    packed = pack(torch.ones(PANEL + 3, 5), FORMATS["float32"])
    assert packed.shape == (2, 5, PANEL)
    assert (packed[1, :, :3] == 1).all()
    assert (packed[1, :, 3:] == 0).all()


def test_a_large_weight_is_packed_part_by_part_to_the_same_panels() -> None:
    weight = torch.from_numpy(random(150 * PANEL + 3, 3))
    whole = pack(weight, FORMATS["int8"])
    assert whole.shape[0] == 151
    for panel in (0, 63, 64, 127, 128, 150):
        part = weight[panel * PANEL : (panel + 1) * PANEL]
        assert np.array_equal(whole[panel], pack(part, FORMATS["int8"])[0])
