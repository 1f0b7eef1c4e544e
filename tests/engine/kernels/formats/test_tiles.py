"""bfloat16 weights in tile registers."""

from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.kernels.arrays import random

from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.formats.registry import FORMATS
from outrider.engine.kernels.formats.tiles import (
    DEPTH,
    BFloat16Tiles,
    in_parts,
    place_in_tiles,
    release,
    tile_product,
    tiles_available,
)
from outrider.engine.kernels.panel import pack
from outrider.engine.models.packing import PACKINGS

Array = np.ndarray[Any, np.dtype[Any]]
needs_tiles = pytest.mark.skipif(not tiles_available(), reason="this CPU has no tile registers")


def parts_of(x: Array) -> Array:
    """The two parts of `x` as float64 [2, R, K filled up]."""
    rows, depth = x.shape
    room = np.full(2 * rows * (depth + DEPTH), 0x7FC0, np.uint16)
    bits = in_parts(x, room)
    release()
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def product(weight: torch.Tensor, x: Array) -> Array:
    rows, depth = x.shape
    packed = pack(weight, BFloat16Tiles())
    out = np.full((rows, len(packed) * PANEL + 2), -1, np.float32)
    parts = in_parts(x, np.empty(2 * rows * (depth + DEPTH), np.uint16))
    for p, panel in enumerate(packed):
        tile_product(panel, parts, out, p * PANEL)
    release()
    assert (out[:, -2:] == -1).all()
    return out[:, :-2]


def test_a_weight_stands_where_the_kernel_looks_for_it() -> None:
    weight = torch.from_numpy(random(2 * PANEL, 70)).bfloat16()
    packed = pack(weight.float(), BFloat16Tiles())
    assert packed.shape == (2, 3, DEPTH * PANEL)
    bits = weight.view(torch.int16).numpy().view(np.uint16)
    for output in range(2 * PANEL):
        for k in range(70):
            place = place_in_tiles(output % PANEL, k % DEPTH)
            assert packed[output // PANEL, k // DEPTH, place] == bits[output, k]
    assert np.count_nonzero(packed) == np.count_nonzero(bits)


@needs_tiles
@pytest.mark.parametrize("depth", [1, 15, 16, 17, 31, 32, 33, 48, 100])
def test_two_parts_hold_16_bits_of_every_number_and_zeros_behind_them(depth: int) -> None:
    x = random(3, depth, scale=100)
    high, low = parts_of(x)
    exact = x.astype(np.float64)
    assert (np.abs(high[:, :depth] + low[:, :depth] - exact) <= 2.0**-16 * np.abs(exact)).all()
    assert not high[:, depth:].any()
    assert not low[:, depth:].any()
    assert high.shape[1] % DEPTH == 0


@needs_tiles
def test_numbers_of_16_bits_are_split_without_loss() -> None:
    x = np.array([[0.0, -0.0, 1.0, -1.5, 255.0, 65535.0, 1 + 2.0**-15, -3e38, 2.0**-100]])
    high, low = parts_of(x.astype(np.float32))
    count = x.shape[1]
    assert np.array_equal((high + low)[0, :count], x[0].astype(np.float32).astype(np.float64))


@needs_tiles
@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so_in_its_own_row(broken: float) -> None:
    weight, x = torch.from_numpy(random(PANEL, 64)), random(20, 64)
    sound = product(weight, x)
    x[7, 5] = broken
    seen = product(weight, x)
    assert not np.isfinite(seen[7]).any()
    assert np.array_equal(np.delete(seen, 7, 0), np.delete(sound, 7, 0))


@needs_tiles
@pytest.mark.parametrize("rows", [0, 1, 2, 15, 16, 17, 31, 32, 33, 50])
@pytest.mark.parametrize("depth", [1, 33, 576])
def test_the_product_is_that_of_the_parts_but_for_rounding(rows: int, depth: int) -> None:
    weight, x = torch.from_numpy(random(2 * PANEL, depth)), random(rows, depth)
    high, low = parts_of(x)
    exact = (high + low)[:, :depth] @ weight.bfloat16().double().numpy().T
    np.testing.assert_allclose(product(weight, x), exact, atol=1e-4)


@needs_tiles
def test_the_product_of_whole_numbers_is_exact() -> None:
    generator = np.random.default_rng(0)
    weight = torch.from_numpy(generator.integers(-100, 101, (PANEL, 90)).astype(np.float32))
    x = generator.integers(-9_999, 10_000, (23, 90)).astype(np.float32)
    assert np.array_equal(product(weight, x), x @ weight.numpy().T)


def test_bfloat16_is_kept_in_tiles_where_the_cpu_has_them() -> None:
    assert ("bfloat16 in tiles" in FORMATS) == tiles_available()
    assert isinstance(PACKINGS["bfloat16"].layers, BFloat16Tiles) == tiles_available()
