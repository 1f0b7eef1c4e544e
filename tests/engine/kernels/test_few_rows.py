"""One row and two on vectors, held against what tile registers give the same rows among others."""

from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.kernels.arrays import random

from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.formats.tiles import DEPTH, PARTS, BFloat16Tiles, tiles_available
from outrider.engine.kernels.panel import pack
from outrider.engine.kernels.products import panel_product
from outrider.engine.kernels.tile_product import in_parts

pytestmark = pytest.mark.skipif(not tiles_available(), reason="this CPU has no tile registers")
Array = np.ndarray[Any, np.dtype[Any]]


def product(weight: torch.Tensor, x: Array) -> Array:
    packed = pack(weight, BFloat16Tiles())
    out = np.empty((len(x), len(packed) * PANEL), np.float32)
    parts = in_parts(x, np.empty(PARTS * len(x) * (x.shape[1] + DEPTH), np.uint16))
    for p, panel in enumerate(packed):
        panel_product(panel, packed[-1], parts, out, p * PANEL)
    return out


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("depth", [1, 32, 33, 576, 1536])
@pytest.mark.parametrize("seed", range(5))
def test_few_rows_have_the_bits_that_they_have_among_many(rows: int, depth: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    sizes = 10 ** generator.uniform(-4, 4, (2 * PANEL, depth))
    weight = torch.from_numpy((sizes * generator.standard_normal(sizes.shape)).astype(np.float32))
    x = generator.standard_normal((16, depth)).astype(np.float32)
    few, many = product(weight, x[:rows]), product(weight, x)[:rows]
    assert np.array_equal(few.view(np.uint32), many.view(np.uint32))


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rows", [1, 2])
def test_what_is_not_finite_stays_so(broken: float, rows: int) -> None:
    weight, x = torch.from_numpy(random(PANEL, 64)), random(rows, 64)
    sound = product(weight, x)
    x[-1, 5] = broken
    seen = product(weight, x)
    assert not np.isfinite(seen[-1]).any()
    assert np.array_equal(seen[:-1], sound[:-1])
