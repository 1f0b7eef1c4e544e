from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider.engine.compiling import compiled
from outrider.engine.kernels.exponential import exponential as vector_exponential
from outrider.engine.kernels.vectors import INDEX, LANES, VECTOR, load

Floats = np.ndarray[Any, np.dtype[np.float32]]


@intrinsic
def exponentiate(_typing: Any, array: Any) -> Any:
    """Replace all of a float32 array, of a multiple of LANES, by its exponentials."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = context.make_array(signature.args[0])(context, builder, args[0])
        lanes = ir.Constant(INDEX, LANES)
        with cgutils.for_range(builder, builder.sdiv(values.nitems, lanes), intp=INDEX) as loop:
            address = builder.gep(values.data, [builder.mul(loop.index, lanes)])
            pointer = builder.bitcast(address, VECTOR.as_pointer())
            builder.store(vector_exponential(builder, load(builder, address)), pointer, align=4)
        return context.get_dummy_value()

    return types.void(array), codegen


@pytest.fixture(scope="module")
def exponential() -> Callable[[Floats], Floats]:
    @compiled()
    def in_place(array: Any) -> None:
        exponentiate(array)

    def of(x: Floats) -> Floats:
        padded = np.zeros(-(-len(x) // LANES) * LANES, np.float32)
        padded[: len(x)] = x
        in_place(padded)
        return padded[: len(x)]

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
