"""The exponential of float32 vectors, which numba would compute one value at a time."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider.engine.kernels.vectors import LANES

_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_INTS = ir.VectorType(ir.IntType(32), LANES)
_INDEX = ir.IntType(64)

_LOWEST, _HIGHEST = -70.0, 88.0
"""Below the one the result is 0, far from denormal numbers, which are slow; no infinity above."""

_LOG2_E = 1.44269504088896341
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


def _spread(value: float) -> Any:
    return ir.Constant(_FLOATS, [value] * LANES)


def _call(builder: Any, name: str, *args: Any) -> Any:
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_FLOATS, [_FLOATS] * len(args)), f"llvm.{name}.v{LANES}f32"
    )
    return builder.call(function, args)


def _exponential(builder: Any, x: Any) -> Any:
    """exp(x) = 2^n exp(r) with n the whole number nearest to x / ln 2."""
    vanishes = builder.fcmp_ordered("<", x, _spread(_LOWEST))
    x = _call(builder, "minnum", _call(builder, "maxnum", x, _spread(_LOWEST)), _spread(_HIGHEST))
    n = _call(builder, "rint", builder.fmul(x, _spread(_LOG2_E)))
    r = _call(builder, "fma", n, _spread(-_LN2_HIGH), x)
    r = _call(builder, "fma", n, _spread(-_LN2_LOW), r)
    p = _spread(_POLYNOMIAL[0])
    for coefficient in _POLYNOMIAL[1:]:
        p = _call(builder, "fma", p, r, _spread(coefficient))
    p = _call(builder, "fma", p, builder.fmul(r, r), builder.fadd(r, _spread(1.0)))
    biased = builder.add(builder.fptosi(n, _INTS), ir.Constant(_INTS, [127] * LANES))
    power = builder.bitcast(builder.shl(biased, ir.Constant(_INTS, [23] * LANES)), _FLOATS)
    return builder.select(vanishes, ir.Constant(_FLOATS, None), builder.fmul(p, power))


@intrinsic
def exponentiate(_typing: Any, array: Any, row: Any, column: Any, count: Any) -> Any:
    """Replaces `count` values of `array` (float32, 2-D, C-contiguous) by their exponentials.

    They begin at [row, column] and are taken `LANES` at a time: there must be room for the last.
    """
    signature = types.void(array, types.intp, types.intp, types.intp)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = context.make_array(signature.args[0])(context, builder, args[0])
        width = builder.extract_value(values.shape, 1)
        first = builder.add(builder.mul(args[1], width), args[2])
        lanes = ir.Constant(_INDEX, LANES)
        rounded = builder.add(args[3], ir.Constant(_INDEX, LANES - 1))
        with cgutils.for_range(builder, builder.sdiv(rounded, lanes), intp=_INDEX) as loop:
            at = builder.add(first, builder.mul(loop.index, lanes))
            address = builder.bitcast(builder.gep(values.data, [at]), _FLOATS.as_pointer())
            result = _exponential(builder, builder.load(address, align=4))
            builder.store(result, address, align=4)
        return context.get_dummy_value()

    return signature, codegen
