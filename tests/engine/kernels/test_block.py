from typing import Any

import numpy as np
import pytest
import torch
from numba import njit

from outrider.engine.compiling import compiled
from outrider.engine.kernels.block import MOST_ROWS, as_float32, multiply_block
from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.vectors import LANES

Array = np.ndarray[Any, np.dtype[Any]]
GUARD = np.float32(-12345.0)
MATRIX_COLUMN, X_ROW, X_COLUMN, OUT_ROW, OUT_COLUMN = 3, 2, 5, 1, 7


@compiled()
def multiply(
    matrix: Any, depth: int, x: Any, x_column: int, out: Any, rows: int, more: bool
) -> None:
    """`multiply_block` on blocks at the places above."""
    places = X_ROW, x_column, out, OUT_ROW, OUT_COLUMN
    multiply_block(matrix, MATRIX_COLUMN, depth, x, *places, rows, more, 4096)


def block(matrix: Array, x: Array, depth: int, rows: int) -> Array:
    """An output array with the product in its place and guards all around."""
    out = np.full((OUT_ROW + rows + 1, OUT_COLUMN + PANEL + 3), GUARD, np.float32)
    multiply(matrix, depth, x, X_COLUMN, out, rows, False)
    return out


def operands(depth: int, rows: int, *, whole: bool) -> tuple[Array, Array]:
    """A random matrix and x around the blocks; small whole numbers, whose sums are exact."""
    random = np.random.default_rng(depth * 100 + rows)
    shapes = (depth + 1, MATRIX_COLUMN + PANEL + 4), (X_ROW + rows, X_COLUMN + depth + 2)
    draw = (lambda shape: random.integers(-8, 9, shape)) if whole else random.standard_normal
    matrix, x = (draw(shape).astype(np.float32) for shape in shapes)
    return matrix, x


def bfloat16_bits(values: Array) -> Array:
    bits: Array = torch.from_numpy(values).bfloat16().view(torch.int16).numpy().view(np.uint16)
    return bits.astype(np.uint32)


def bfloat16_pairs(matrix: Array) -> Array:
    """The block's columns in pairs, at the same offset in a matrix of other values."""
    columns = matrix[:, MATRIX_COLUMN : MATRIX_COLUMN + PANEL]
    halves = bfloat16_bits(np.ascontiguousarray(columns)).reshape(len(matrix), -1, 2, LANES)
    pairs = (halves[:, :, 0] | halves[:, :, 1] << 16).reshape(len(matrix), -1)
    edges = ((0, 0), (MATRIX_COLUMN, 4))
    return np.pad(pairs, edges, constant_values=0x7FC07FC0)


@pytest.mark.parametrize("stored", ["float32", "bfloat16"])
def test_it_is_the_product_of_the_blocks_for_every_number_of_rows(stored: str) -> None:
    for rows in range(1, MOST_ROWS + 1):
        for depth in (0, 1, 37):
            matrix, x = operands(depth, rows, whole=True)
            weights = matrix if stored == "float32" else bfloat16_pairs(matrix)
            out = block(weights, x, depth, rows)
            inside = np.s_[OUT_ROW : OUT_ROW + rows, OUT_COLUMN : OUT_COLUMN + PANEL]
            expected = np.full_like(out, GUARD)
            expected[inside] = (
                x[X_ROW : X_ROW + rows, X_COLUMN : X_COLUMN + depth]
                @ matrix[:depth, MATRIX_COLUMN : MATRIX_COLUMN + PANEL]
            )
            assert np.array_equal(out, expected)


def test_a_row_is_bit_for_bit_the_same_for_every_number_of_rows() -> None:
    matrix, x = operands(300, MOST_ROWS, whole=False)
    together = block(matrix, x, 300, MOST_ROWS)
    for rows in range(1, MOST_ROWS):
        fewer = block(matrix, x, 300, rows)
        inside = np.s_[OUT_ROW : OUT_ROW + rows]
        assert np.array_equal(fewer[inside], together[inside])


def test_sums_that_go_on_from_the_output_are_bit_for_bit_those_of_one_call() -> None:
    rows, depth = MOST_ROWS, 200
    matrix, x = operands(depth, rows, whole=False)
    expected = block(matrix, x, depth, rows)
    for cut in (0, 1, 77, depth):
        out = block(matrix, x, cut, rows)
        multiply(matrix[cut:], depth - cut, x, X_COLUMN + cut, out, rows, True)
        assert np.array_equal(out, expected)


def test_sums_are_fused_multiply_adds_in_ascending_order() -> None:
    matrix, x = operands(200, 1, whole=False)
    column, row = matrix[:200, MATRIX_COLUMN].astype(np.float64), x[X_ROW, X_COLUMN:]
    total = np.float32(0)
    for weight, value in zip(column, row, strict=False):
        # A float64 holds the product exactly, as the fused operation does.
        total = np.float32(weight * np.float64(value) + np.float64(total))
    assert block(matrix, x, 200, 1)[OUT_ROW, OUT_COLUMN] == total


def test_stored_weights_widen_to_float32_without_change() -> None:
    widen = njit(lambda array, at, half: as_float32(array[at], half))
    values = np.array([0.0, -0.0, 1.5, -3e38, 1e-40, np.inf, -np.inf], np.float32)
    assert [widen(values, i, 0) for i in range(len(values))] == values.tolist()
    bits = bfloat16_bits(values)
    expected = torch.from_numpy(values).bfloat16().float().tolist()
    pairs = bits | bits[::-1] << 16
    assert [widen(pairs, i, 0) for i in range(len(bits))] == expected
    assert [widen(pairs, i, 1) for i in range(len(bits))] == expected[::-1]
