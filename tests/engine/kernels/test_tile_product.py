from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.kernels.arrays import random

from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.formats.tiles import DEPTH, PARTS, BFloat16Tiles, tiles_available
from outrider.engine.kernels.panel import pack
from outrider.engine.kernels.tile_product import in_parts, rows_of_block, tile_product

pytestmark = pytest.mark.skipif(not tiles_available(), reason="this CPU has no tile registers")
Array = np.ndarray[Any, np.dtype[Any]]


def parts_of(x: Array) -> Array:
    """The parts of `x` as float64 [PARTS, R, K filled up]."""
    rows, depth = x.shape
    room = np.full(PARTS * rows * (depth + DEPTH), 0x7FC0, np.uint16)
    bits: Array = in_parts(x, room)
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def product(weight: torch.Tensor, x: Array) -> Array:
    rows, depth = x.shape
    packed = pack(weight, BFloat16Tiles())
    out = np.full((rows, len(packed) * PANEL + 2), -1, np.float32)
    parts = in_parts(x, np.empty(PARTS * rows * (depth + DEPTH), np.uint16))
    for p, panel in enumerate(packed):
        tile_product(panel, panel, parts, out, p * PANEL)
    assert (out[:, -2:] == -1).all()
    return out[:, :-2]


@pytest.mark.parametrize("depth", [1, 15, 16, 17, 31, 32, 33, 48, 100])
def test_the_parts_have_16_bits_of_every_number_with_zeros_behind_the_last(depth: int) -> None:
    x = random(3, depth, scale=100)
    parts = parts_of(x)
    exact = x.astype(np.float64)
    assert (np.abs(parts.sum(axis=0)[:, :depth] - exact) <= 2.0**-16 * np.abs(exact)).all()
    assert not parts[:, :, depth:].any()
    assert parts.shape[2] % DEPTH == 0


def test_numbers_of_16_bits_are_split_without_loss() -> None:
    x = np.array([[0.0, -0.0, 1.0, -1.5, 65535.0, 1 + 2.0**-15, -3e38, 2.0**-100]], np.float32)
    exact = x[0].astype(np.float64)
    exact[-2] = parts_of(x)[:, 0, 6].sum()  # 3e38 has more bits
    assert np.array_equal(parts_of(x).sum(axis=0)[0, : x.shape[1]], exact)
    assert exact[-2] == pytest.approx(-3e38, rel=2.0**-16)


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so_in_its_own_row(broken: float) -> None:
    weight, x = torch.from_numpy(random(PANEL, 64)), random(20, 64)
    sound = product(weight, x)
    x[7, 5] = broken
    seen = product(weight, x)
    assert not np.isfinite(seen[7]).any()
    assert np.array_equal(np.delete(seen, 7, 0), np.delete(sound, 7, 0))


@pytest.mark.parametrize("rows", [0, 1, 2, 15, 16, 17, 31, 32, 33, 50])
@pytest.mark.parametrize("depth", [1, 33, 576])
def test_the_product_is_that_of_the_parts_but_for_rounding(rows: int, depth: int) -> None:
    weight, x = torch.from_numpy(random(2 * PANEL, depth)), random(rows, depth)
    exact = parts_of(x).sum(axis=0)[:, :depth] @ weight.bfloat16().double().numpy().T
    np.testing.assert_allclose(product(weight, x), exact, atol=1e-4)


def test_the_product_of_whole_numbers_is_exact() -> None:
    generator = np.random.default_rng(0)
    weight = torch.from_numpy(generator.integers(-100, 101, (PANEL, 90)).astype(np.float32))
    x = generator.integers(-99, 100, (23, 90)).astype(np.float32)
    assert np.array_equal(product(weight, x), x @ weight.numpy().T)


@pytest.mark.parametrize(
    ("rows", "together"), [(1, 1), (3, 3), (16, 16), (17, 9), (32, 16), (33, 11), (192, 16)]
)
def test_blocks_are_as_small_as_their_number_allows(rows: int, together: int) -> None:
    assert rows_of_block(rows) == together
