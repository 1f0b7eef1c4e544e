from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

from outrider.engine.kernels.exponential import exponentiate
from outrider.engine.kernels.vectors import LANES

Floats = np.ndarray[Any, np.dtype[np.float32]]
Exponentiate = Callable[[Floats, int, int, int], None]


@pytest.fixture(scope="module")
def in_place() -> Exponentiate:
    def kernel(array: Any, row: int, column: int, count: int) -> None:
        exponentiate(array, row, column, count)

    compiled: Exponentiate = njit(kernel)
    return compiled


@pytest.fixture(scope="module")
def exponential(in_place: Exponentiate) -> Callable[[Floats], Floats]:
    def of(x: Floats) -> Floats:
        padded = np.zeros((1, -(-len(x) // LANES) * LANES), np.float32)
        padded[0, : len(x)] = x
        in_place(padded, 0, 0, len(x))
        return padded[0, : len(x)]

    return of


@pytest.mark.parametrize(
    ("lowest", "highest"), [(-70.0, 88.0), (-1.0, 1.0), (-70.0, -69.99), (87.99, 88.0), (-1e-6, 0)]
)
def test_it_is_the_exponential_to_float32_precision_from_minus_70_to_88(
    lowest: float, highest: float, exponential: Callable[[Floats], Floats]
) -> None:
    x = np.linspace(lowest, highest, 200_000, dtype=np.float32)
    expected = np.exp(x.astype(np.float64))
    assert (np.abs(exponential(x) - expected) <= 2e-7 * expected).all()


def test_it_is_precise_where_the_range_is_split(exponential: Callable[[Floats], Floats]) -> None:
    # Odd multiples of ln 2 / 2, where the power of two changes, and their neighbours.
    middles = ((2 * np.arange(-100, 127) + 1) * np.log(2) / 2).astype(np.float32)
    x = np.concatenate([middles, np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf)])
    x = x[(x >= -70) & (x <= 88)]
    expected = np.exp(x.astype(np.float64))
    assert (np.abs(exponential(x) - expected) <= 2e-7 * expected).all()


@pytest.mark.parametrize("x", [-70.001, -87.0, -104.0, -1e4, -3e38, -np.inf])
def test_below_minus_70_it_is_exactly_zero(
    x: float, exponential: Callable[[Floats], Floats]
) -> None:
    assert exponential(np.full(3, x, np.float32)).tolist() == [0.0] * 3


@pytest.mark.parametrize("x", [88.001, 88.8, 1e4, 3e38, np.inf])
def test_above_88_it_stays_at_its_last_finite_value(
    x: float, exponential: Callable[[Floats], Floats]
) -> None:
    seen, last = exponential(np.array([x, 88.0], np.float32))
    assert seen == last
    assert last == pytest.approx(np.exp(88.0), rel=1e-6)


@pytest.mark.parametrize("x", [0.0, -0.0])
def test_of_zero_it_is_exactly_one(x: float, exponential: Callable[[Floats], Floats]) -> None:
    assert exponential(np.array([x], np.float32)).tolist() == [1.0]


@pytest.mark.parametrize("count", [0, 1, LANES - 1, LANES, LANES + 1, 2 * LANES])
def test_it_replaces_whole_vectors_from_its_place_on_and_nothing_else(
    count: int, in_place: Exponentiate
) -> None:
    x = np.random.default_rng(1).normal(size=(3, 4 * LANES)).astype(np.float32)
    seen = x.copy()
    in_place(seen, 1, 5, count)
    whole = slice(5, 5 + -(-count // LANES) * LANES)
    np.testing.assert_allclose(seen[1, whole], np.exp(x[1, whole]), rtol=2e-7)
    seen[1, whole] = x[1, whole]
    assert np.array_equal(seen, x)
