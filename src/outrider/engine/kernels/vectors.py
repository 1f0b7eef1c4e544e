"""Vectors of float32 in LLVM, which every CPU that numba targets can lower, and their operations.

numba's own vectorizer neither keeps a block's accumulators in registers nor prefetches.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils

LANES = 16
"""float32 values in one vector."""

FLOAT = ir.FloatType()
VECTOR = ir.VectorType(FLOAT, LANES)
INTEGERS = ir.VectorType(ir.IntType(32), LANES)
INDEX = ir.IntType(64)
_BYTES = ir.IntType(8).as_pointer()
_INT32 = ir.IntType(32)


def index(value: int) -> Any:
    """A number of elements or bytes."""
    return ir.Constant(INDEX, value)


def constant(value: float) -> Any:
    """A vector with the number `value` in every lane."""
    return ir.Constant(VECTOR, [value] * LANES)


def load(builder: Any, address: Any, kind: Any = VECTOR, *, align: int = 4) -> Any:
    """The `kind` of vector that stands at `address`."""
    return builder.load(builder.bitcast(address, kind.as_pointer()), align=align)


def bytes_after(builder: Any, address: Any, count: Any) -> Any:
    """The address `count` bytes behind `address`."""
    return builder.gep(builder.bitcast(address, _BYTES), [count])


def spread(builder: Any, scalar: Any) -> Any:
    """A vector with `scalar` in every lane."""
    undefined = ir.Constant(ir.VectorType(scalar.type, LANES), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_INT32, 0))
    every_lane = ir.Constant(ir.VectorType(_INT32, LANES), None)
    return builder.shuffle_vector(first, undefined, every_lane)


def multiply_add(builder: Any, a: Any, b: Any, total: Any) -> Any:
    """`a * b + total`, rounded once."""
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(VECTOR, [VECTOR] * 3), f"llvm.fma.v{LANES}f32"
    )
    return builder.call(function, [a, b, total])


def prefetch(builder: Any, address: Any, *, nearness: int = 3) -> None:
    """Ask for the cache line at `address`, where there may be no memory.

    Into the nearest cache (3), or into the one behind it (2).
    """
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.VoidType(), [_BYTES, _INT32, _INT32, _INT32]),
        "llvm.prefetch.p0",
    )
    read, keep, data = (ir.Constant(_INT32, flag) for flag in (0, nearness, 1))
    builder.call(function, [address, read, keep, data])
