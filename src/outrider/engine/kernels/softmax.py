"""The softmax of attention scores, a vector of them at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider.engine.compiling import compiled
from outrider.engine.kernels.exponential import exponential
from outrider.engine.kernels.vectors import (
    FLOAT,
    INDEX,
    LANES,
    VECTOR,
    constant,
    index,
    load,
    spread,
)

_INT32 = ir.IntType(32)
_ORDER = ir.VectorType(_INT32, LANES)
_PLACES = ir.VectorType(INDEX, LANES)


@compiled()
def softmax(scores: Any, row: Any, start: Any, end: Any, scale: Any) -> None:
    """Turn `scores[row, start:end]` into weights that sum to 1, and spoil the rest of the row.

    `scores` is float32, 2-D and C-contiguous, with rows of a multiple of `LANES`; start < end. How
    the sum is made depends on the number of scores and on `start` modulo `LANES` alone.
    """
    _softmax(scores, row, start, end, scale)


@intrinsic
def _softmax(_typing: Any, scores: Any, row: Any, start: Any, end: Any, scale: Any) -> Any:
    signature = types.void(scores, types.intp, types.intp, types.intp, types.float32)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        first = builder.mul(args[1], builder.extract_value(array.shape, 1))
        visible = _Visible(builder, builder.gep(array.data, [first]), args[2], args[3])
        scale = spread(builder, args[4])
        none = constant(float("-inf"))

        highest = cgutils.alloca_once_value(builder, none)
        with visible.vectors() as (mask, value, _):
            seen = builder.select(mask, value, none)
            builder.store(_greater(builder, seen, builder.load(highest)), highest)
        # Taken away from every score, so that no exponential overflows.
        top = spread(builder, _folded(builder, builder.load(highest), _greater))

        total = cgutils.alloca_once_value(builder, constant(0.0))
        with visible.vectors() as (mask, value, address):
            power = exponential(builder, builder.fmul(builder.fsub(value, top), scale))
            builder.store(power, address, align=4)
            seen = builder.select(mask, power, constant(0.0))
            builder.store(builder.fadd(builder.load(total), seen), total)
        whole = _folded(builder, builder.load(total), _sum)
        share = spread(builder, builder.fdiv(ir.Constant(FLOAT, 1.0), whole))

        with visible.vectors() as (_, value, address):
            builder.store(builder.fmul(value, share), address, align=4)
        return context.get_dummy_value()

    return signature, codegen


@dataclass(frozen=True, slots=True)
class _Visible:
    """The numbers from `start` to `end` of the row at the address `line`."""

    builder: Any
    line: Any
    start: Any
    end: Any

    @contextmanager
    def vectors(self) -> Iterator[tuple[Any, Any, Any]]:
        """A loop over whole vectors: which lanes are visible, the value, and its address."""
        builder = self.builder
        even = builder.sub(self.start, builder.srem(self.start, index(LANES)))
        last = builder.add(builder.sub(self.end, even), index(LANES - 1))
        count = builder.sdiv(last, index(LANES))
        lanes = ir.Constant(_PLACES, list(range(LANES)))
        with cgutils.for_range(builder, count, intp=INDEX) as loop:
            at = builder.add(even, builder.mul(loop.index, index(LANES)))
            places = builder.add(_everywhere(builder, at), lanes)
            begun = builder.icmp_signed(">=", places, _everywhere(builder, self.start))
            ended = builder.icmp_signed("<", places, _everywhere(builder, self.end))
            address = builder.bitcast(builder.gep(self.line, [at]), VECTOR.as_pointer())
            yield builder.and_(begun, ended), load(builder, address), address


def _everywhere(builder: Any, place: Any) -> Any:
    """A vector with `place` in every lane."""
    undefined = ir.Constant(_PLACES, ir.Undefined)
    first = builder.insert_element(undefined, place, ir.Constant(_INT32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(_ORDER, None))


def _greater(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _sum(builder: Any, a: Any, b: Any) -> Any:
    return builder.fadd(a, b)


def _folded(builder: Any, vector: Any, combine: Callable[[Any, Any, Any], Any]) -> Any:
    """All lanes of a vector in one number: halves on halves."""
    width = LANES
    while width > 1:
        width //= 2
        order = [(lane + width) % LANES for lane in range(LANES)]
        turned = builder.shuffle_vector(vector, vector, ir.Constant(_ORDER, order))
        vector = combine(builder, vector, turned)
    return builder.extract_element(vector, ir.Constant(_INT32, 0))
