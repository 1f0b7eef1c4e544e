from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider.engine.kernels.exponential import exponential as vector_exponential
from outrider.engine.kernels.exponential import power_of_two as vector_power_of_two
from outrider.engine.kernels.vectors import INDEX, LANES, VECTOR, load

Floats = np.ndarray[Any, np.dtype[np.float32]]


def in_place(emit: Callable[[Any, Any], Any]) -> Callable[[Floats], Floats]:
    """What `emit` makes of float32 arrays of any length, vector by vector."""

    @intrinsic
    def replace(_typing: Any, array: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values = context.make_array(signature.args[0])(context, builder, args[0])
            lanes = ir.Constant(INDEX, LANES)
            with cgutils.for_range(builder, builder.sdiv(values.nitems, lanes), intp=INDEX) as loop:
                address = builder.gep(values.data, [builder.mul(loop.index, lanes)])
                pointer = builder.bitcast(address, VECTOR.as_pointer())
                builder.store(emit(builder, load(builder, address)), pointer, align=4)
            return context.get_dummy_value()

        return types.void(array), codegen

    @njit
    def all_of(array: Any) -> None:
        replace(array)

    def of(x: Floats) -> Floats:
        padded = np.zeros(-(-len(x) // LANES) * LANES, np.float32)
        padded[: len(x)] = x
        all_of(padded)
        return padded[: len(x)]

    return of


@pytest.fixture(scope="module")
def exponential() -> Callable[[Floats], Floats]:
    return in_place(vector_exponential)


@pytest.fixture(scope="module")
def power_of_two() -> Callable[[Floats], Floats]:
    return in_place(vector_power_of_two)


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


def test_a_power_of_two_is_precise_from_minus_100_to_0(
    power_of_two: Callable[[Floats], Floats],
) -> None:
    t = np.linspace(-100, 0, 400_000, dtype=np.float32)
    middles = np.arange(-99.5, 0).astype(np.float32)  # where the whole power changes
    t = np.concatenate([t, middles, np.nextafter(middles, 0), np.nextafter(middles, -200)])
    expected = np.exp2(t.astype(np.float64))
    assert (np.abs(power_of_two(t) - expected) <= 4e-7 * expected).all()


@pytest.mark.parametrize("t", [-100.01, -126.5, -127.0, -1e4, -3e38, -np.inf])
def test_a_power_of_two_below_minus_100_is_exactly_zero(
    t: float, power_of_two: Callable[[Floats], Floats]
) -> None:
    assert power_of_two(np.full(3, t, np.float32)).tolist() == [0.0] * 3


def test_a_power_of_two_of_zero_is_one_and_of_no_number_none(
    power_of_two: Callable[[Floats], Floats],
) -> None:
    seen = power_of_two(np.array([0.0, -0.0, np.nan, -1.0], np.float32))
    assert seen[[0, 1, 3]].tolist() == [1.0, 1.0, 0.5]
    assert np.isnan(seen[2])
