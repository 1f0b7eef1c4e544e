"""bfloat16 weights in tiles; they can be packed on any CPU."""

import numpy as np
import torch
from tests.engine.kernels.arrays import random

from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.formats.registry import FORMATS
from outrider.engine.kernels.formats.tiles import (
    DEPTH,
    BFloat16Tiles,
    place_in_line,
    tiles_available,
)
from outrider.engine.kernels.panel import pack
from outrider.engine.models.packing import PACKINGS


def test_a_weight_stands_where_the_kernel_looks_for_it() -> None:
    weight = torch.from_numpy(random(2 * PANEL, 70)).bfloat16()
    packed = pack(weight.float(), BFloat16Tiles())
    assert packed.shape == (2, 3, DEPTH * PANEL)
    bits = weight.view(torch.int16).numpy().view(np.uint16)
    for output in range(2 * PANEL):
        for k in range(70):
            place = place_in_line(output % PANEL, k % DEPTH)
            assert packed[output // PANEL, k // DEPTH, place] == bits[output, k]
    assert np.count_nonzero(packed) == np.count_nonzero(bits)


def test_bfloat16_is_kept_in_tiles_where_the_cpu_has_them() -> None:
    assert ("bfloat16 in tiles" in FORMATS) == tiles_available()
    assert isinstance(PACKINGS["bfloat16"].layers, BFloat16Tiles) == tiles_available()
