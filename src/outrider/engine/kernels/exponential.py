"""Exponentials of float32 vectors, which numba would compute one value at a time."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from outrider.engine.kernels.vectors import INTEGERS, LANES, VECTOR, constant

_LOWEST, _HIGHEST = -70.0, 88.0
"""Below the one the result is 0, far from denormal numbers, which are slow; no infinity above."""

LOG2_E = 1.44269504088896341
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
"""ln 2 in two parts, so that n ln 2 loses nothing."""

_POLYNOMIAL = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)
"""(exp(r) - 1 - r) / r^2 on |r| <= ln 2 / 2, highest power first: the minimax fit of Cephes."""

_LOWEST_POWER = -100.0
"""Below it 2^t is 0, so that no product with it is a denormal number."""

_POWER_OF_TWO = (
    0.0013390867351634158,
    0.009666373693209877,
    0.05550357104252218,
    0.24022348940946933,
    0.6931471880293429,
    1.0,
)
"""2^f on |f| <= 1/2, highest power first, within 2.1e-7: interpolated at Chebyshev's nodes."""


def _call(builder: Any, name: str, *args: Any) -> Any:
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(VECTOR, [VECTOR] * len(args)), f"llvm.{name}.v{LANES}f32"
    )
    return builder.call(function, args)


def exponential(builder: Any, x: Any) -> Any:
    """A vector of exp(x) = 2^n exp(r), with n the whole number nearest to x / ln 2."""
    vanishes = builder.fcmp_ordered("<", x, constant(_LOWEST))
    x = _call(builder, "minnum", _call(builder, "maxnum", x, constant(_LOWEST)), constant(_HIGHEST))
    n = _call(builder, "rint", builder.fmul(x, constant(LOG2_E)))
    r = _call(builder, "fma", n, constant(-_LN2_HIGH), x)
    r = _call(builder, "fma", n, constant(-_LN2_LOW), r)
    p = constant(_POLYNOMIAL[0])
    for coefficient in _POLYNOMIAL[1:]:
        p = _call(builder, "fma", p, r, constant(coefficient))
    p = _call(builder, "fma", p, builder.fmul(r, r), builder.fadd(r, constant(1.0)))
    return builder.select(
        vanishes, ir.Constant(VECTOR, None), builder.fmul(p, _whole_power(builder, n))
    )


def power_of_two(builder: Any, t: Any) -> Any:
    """A vector of 2^t for t <= 0, in fewer operations than `exponential`.

    The rounding of t shows where it is far below 0, by 2^-24 of t. What is no number stays none.
    """
    vanishes = builder.fcmp_ordered("<", t, constant(_LOWEST_POWER))
    # The exponent that makes bits of 0.
    t = builder.select(vanishes, constant(-127.0), t)
    n = _call(builder, "rint", t)
    f = builder.fsub(t, n)
    p = constant(_POWER_OF_TWO[0])
    for coefficient in _POWER_OF_TWO[1:]:
        p = _call(builder, "fma", p, f, constant(coefficient))
    return builder.fmul(p, _whole_power(builder, n))


def _whole_power(builder: Any, n: Any) -> Any:
    """2^n for whole numbers from -127, for which it is 0, to 127."""
    biased = builder.add(builder.fptosi(n, INTEGERS), ir.Constant(INTEGERS, [127] * LANES))
    return builder.bitcast(builder.shl(biased, ir.Constant(INTEGERS, [23] * LANES)), VECTOR)
