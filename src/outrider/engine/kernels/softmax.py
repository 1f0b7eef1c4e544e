"""The softmax of attention scores, a vector of them at a time, but for the division by its sum."""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider.engine.compiling import compiled
from outrider.engine.kernels.exponential import LOG2_E, power_of_two
from outrider.engine.kernels.vectors import (
    INDEX,
    LANES,
    VECTOR,
    constant,
    index,
    load,
    spread,
)

_INT32 = ir.IntType(32)
_UNSEEN = np.float32(-np.inf)


@compiled()
def exponentials(scores: Any, row: Any, start: Any, end: Any, scale: Any) -> Any:
    """Turn `scores[row, start:end]` into weights, greatest 1, and return their sum as float32.

    The vectors that the range begins and ends in get 0 beside it; what is further away stays as it
    is. `scores` is float32, 2-D and C-contiguous, with rows of a multiple of `LANES`; start < end.
    How the sum is made depends on the number of scores and on `start` modulo `LANES` alone. A score
    that is no number leaves no weight that is one.
    """
    first, last = unseen_around(scores, row, start, end)
    return _exponentials(scores, row, first, last, scale)


@compiled()
def unseen_around(scores: Any, row: Any, start: Any, end: Any) -> Any:
    """Hide what lies beside a range in the vectors that it begins and ends in; return their range.

    The lowest of scores, it gets the weight 0.
    """
    first, last = start - start % LANES, end + -end % LANES
    scores[row, first:start] = _UNSEEN
    scores[row, end:last] = _UNSEEN
    return first, last


@intrinsic
def _exponentials(_typing: Any, scores: Any, row: Any, first: Any, last: Any, scale: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        line = builder.mul(args[1], builder.extract_value(array.shape, 1))
        start = builder.gep(array.data, [builder.add(line, args[2])])

        def keep(power: Any, at: Any) -> None:
            place = builder.bitcast(builder.gep(start, [at]), VECTOR.as_pointer())
            builder.store(power, place, align=4)

        return emit_exponentials(builder, start, builder.sub(args[3], args[2]), args[4], keep)

    return types.float32(scores, types.intp, types.intp, types.intp, types.float32), codegen


def emit_exponentials(
    builder: Any, start: Any, count: Any, scale: Any, keep: Callable[[Any, Any], None]
) -> Any:
    """The weights of the `count` scores at the address `start`, and their sum.

    `count` is a multiple of `LANES`. `keep` is given each vector of weights and the number of
    scores before it.
    """
    vectors = builder.sdiv(count, index(LANES))
    scale = builder.fmul(spread(builder, scale), constant(LOG2_E))

    highest = cgutils.alloca_once_value(builder, constant(float("-inf")))
    with cgutils.for_range(builder, vectors, intp=INDEX) as loop:
        at = builder.mul(loop.index, index(LANES))
        value = load(builder, builder.gep(start, [at]))
        builder.store(_greater(builder, value, builder.load(highest)), highest)
    # Taken away from every score, so that no exponential overflows.
    top = spread(builder, _folded(builder, builder.load(highest), _greater))

    total = cgutils.alloca_once_value(builder, constant(0.0))
    with cgutils.for_range(builder, vectors, intp=INDEX) as loop:
        at = builder.mul(loop.index, index(LANES))
        below = builder.fsub(load(builder, builder.gep(start, [at])), top)
        power = power_of_two(builder, builder.fmul(below, scale))
        keep(power, at)
        builder.store(builder.fadd(builder.load(total), power), total)
    return folded_sum(builder, builder.load(total))


def _greater(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def folded_sum(builder: Any, vector: Any) -> Any:
    """All lanes of a vector added up."""
    return _folded(builder, vector, lambda builder, a, b: builder.fadd(a, b))


def _folded(builder: Any, vector: Any, combine: Callable[[Any, Any, Any], Any]) -> Any:
    """All lanes of a vector in one number: halves on halves."""
    width = LANES
    while width > 1:
        width //= 2
        order = [(lane + width) % LANES for lane in range(LANES)]
        turned = builder.shuffle_vector(
            vector, vector, ir.Constant(ir.VectorType(_INT32, LANES), order)
        )
        vector = combine(builder, vector, turned)
    return builder.extract_element(vector, ir.Constant(_INT32, 0))
