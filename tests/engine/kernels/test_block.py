from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numba import TypingError, njit

from outrider.engine.kernels.block import LANES, SUM_VECTORS, as_float32, multiply_block

Array = np.ndarray[Any, np.dtype[Any]]
VECTORS = [count for count in (1, 2, 4, 6) if count <= SUM_VECTORS]
GUARD = np.float32(-12345.0)
MATRIX_COLUMN, X_ROW, X_COLUMN, OUT_ROW, OUT_COLUMN = 3, 2, 5, 1, 7


@cache
def kernel(vectors: int) -> Callable[..., None]:
    """`multiply_block` for one width, which has to be a literal, on blocks at the places above."""

    def multiply(
        matrix: Any, depth: int, x: Any, x_column: int, out: Any, rows: int, more: bool
    ) -> None:
        multiply_block(
            matrix,
            MATRIX_COLUMN,
            depth,
            x,
            X_ROW,
            x_column,
            out,
            OUT_ROW,
            OUT_COLUMN,
            rows,
            vectors,
            more,
            4096,
        )

    compiled: Callable[..., None] = njit(multiply)
    return compiled


def block(matrix: Array, x: Array, depth: int, rows: int, vectors: int) -> Array:
    """An output array with the product in its place and guards all around."""
    out = np.full((OUT_ROW + rows + 1, OUT_COLUMN + vectors * LANES + 3), GUARD, np.float32)
    kernel(vectors)(matrix, depth, x, X_COLUMN, out, rows, False)
    return out


def operands(depth: int, rows: int, vectors: int, *, whole: bool) -> tuple[Array, Array]:
    """A random matrix and x around the blocks; small whole numbers, whose sums are exact."""
    random = np.random.default_rng(depth * 100 + rows)
    shapes = (depth + 1, MATRIX_COLUMN + vectors * LANES + 4), (X_ROW + rows, X_COLUMN + depth + 2)
    draw = (lambda shape: random.integers(-8, 9, shape)) if whole else random.standard_normal
    matrix, x = (draw(shape).astype(np.float32) for shape in shapes)
    return matrix, x


def bfloat16_bits(values: Array) -> Array:
    bits: Array = torch.from_numpy(values).bfloat16().view(torch.int16).numpy().view(np.uint16)
    return bits.astype(np.uint32)


def bfloat16_pairs(matrix: Array, vectors: int) -> Array:
    """The block's columns in pairs, at the same offset in a matrix of other values."""
    columns = matrix[:, MATRIX_COLUMN : MATRIX_COLUMN + vectors * LANES]
    halves = bfloat16_bits(np.ascontiguousarray(columns)).reshape(len(matrix), -1, 2, LANES)
    pairs = (halves[:, :, 0] | halves[:, :, 1] << 16).reshape(len(matrix), -1)
    edges = ((0, 0), (MATRIX_COLUMN, 4))
    return np.pad(pairs, edges, constant_values=0x7FC07FC0)


@pytest.mark.parametrize(
    ("vectors", "stored"),
    [*((vectors, "float32") for vectors in VECTORS), (2, "bfloat16"), (4, "bfloat16")],
)
def test_it_is_the_product_of_the_blocks_for_every_number_of_rows(
    vectors: int, stored: str
) -> None:
    for rows in range(1, SUM_VECTORS // vectors + 1):
        for depth in (0, 1, 37):
            matrix, x = operands(depth, rows, vectors, whole=True)
            weights = matrix if stored == "float32" else bfloat16_pairs(matrix, vectors)
            out = block(weights, x, depth, rows, vectors)
            inside = np.s_[OUT_ROW : OUT_ROW + rows, OUT_COLUMN : OUT_COLUMN + vectors * LANES]
            expected = np.full_like(out, GUARD)
            expected[inside] = (
                x[X_ROW : X_ROW + rows, X_COLUMN : X_COLUMN + depth]
                @ matrix[:depth, MATRIX_COLUMN : MATRIX_COLUMN + vectors * LANES]
            )
            assert np.array_equal(out, expected)


@pytest.mark.parametrize("vectors", VECTORS)
def test_a_row_is_bit_for_bit_the_same_for_every_number_of_rows(vectors: int) -> None:
    most = SUM_VECTORS // vectors
    matrix, x = operands(300, most, vectors, whole=False)
    together = block(matrix, x, 300, most, vectors)
    for rows in range(1, most):
        fewer = block(matrix, x, 300, rows, vectors)
        inside = np.s_[OUT_ROW : OUT_ROW + rows]
        assert np.array_equal(fewer[inside], together[inside])


@pytest.mark.parametrize("vectors", VECTORS)
def test_sums_that_go_on_from_the_output_are_bit_for_bit_those_of_one_call(vectors: int) -> None:
    rows, depth = SUM_VECTORS // vectors, 200
    matrix, x = operands(depth, rows, vectors, whole=False)
    expected = block(matrix, x, depth, rows, vectors)
    for cut in (0, 1, 77, depth):
        out = block(matrix, x, cut, rows, vectors)
        kernel(vectors)(matrix[cut:], depth - cut, x, X_COLUMN + cut, out, rows, True)
        assert np.array_equal(out, expected)


def test_sums_are_fused_multiply_adds_in_ascending_order() -> None:
    matrix, x = operands(200, 1, 1, whole=False)
    column, row = matrix[:200, MATRIX_COLUMN].astype(np.float64), x[X_ROW, X_COLUMN:]
    total = np.float32(0)
    for weight, value in zip(column, row, strict=False):
        # A float64 holds the product exactly, as the fused operation does.
        total = np.float32(weight * np.float64(value) + np.float64(total))
    assert block(matrix, x, 200, 1, 1)[OUT_ROW, OUT_COLUMN] == total


def test_a_width_known_only_at_run_time_is_refused() -> None:
    def multiply(matrix: Any, x: Any, out: Any, vectors: int) -> None:
        multiply_block(matrix, 0, 1, x, 0, 0, out, 0, 0, 1, vectors, False, 0)

    array = np.zeros((1, LANES), np.float32)
    with pytest.raises(TypingError):
        njit(multiply)(array, array, array, 1)


def test_stored_weights_widen_to_float32_without_change() -> None:
    widen = njit(lambda array, at, half: as_float32(array[at], half))
    values = np.array([0.0, -0.0, 1.5, -3e38, 1e-40, np.inf, -np.inf], np.float32)
    assert [widen(values, i, 0) for i in range(len(values))] == values.tolist()
    bits = bfloat16_bits(values)
    expected = torch.from_numpy(values).bfloat16().float().tolist()
    pairs = bits | bits[::-1] << 16
    assert [widen(pairs, i, 0) for i in range(len(bits))] == expected
    assert [widen(pairs, i, 1) for i in range(len(bits))] == expected[::-1]
