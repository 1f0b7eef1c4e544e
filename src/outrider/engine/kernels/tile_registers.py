"""Intel's tile registers, each of up to 16 rows of 64 bytes, as LLVM offers them."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider.engine.compiling import compiled
from outrider.engine.kernels.formats.tiles import TILE_ROWS
from outrider.engine.kernels.vectors import index

ROW_BYTES = 64
TILE_BYTES = TILE_ROWS * ROW_BYTES

SUMS = (0, 1), (2, 3)
"""Two for sums of each half of a panel."""
INPUTS = (4, 5)
WEIGHTS = (6, 7)
"""One for each half of a panel."""
TILE_LINE_BYTES = len(WEIGHTS) * TILE_BYTES
"""A line of a panel in tiles."""

_BYTE = ir.IntType(8)


def tile_call(builder: Any, name: str, *args: Any) -> None:
    """Emit one of the instructions; whole numbers among `args` name registers."""
    values = [ir.Constant(_BYTE, arg) if isinstance(arg, int) else arg for arg in args]
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.VoidType(), [value.type for value in values]),
        f"llvm.x86.{name}",
    )
    builder.call(function, values)


def element_address(context: Any, builder: Any, kind: Any, array: Any, *places: Any) -> Any:
    """The address, as bytes, of an element of a C-contiguous array."""
    made = context.make_array(kind)(context, builder, array)
    at = index(0)
    for axis, place in enumerate(places):
        at = builder.add(builder.mul(at, builder.extract_value(made.shape, axis)), place)
    return builder.bitcast(builder.gep(made.data, [at]), _BYTE.as_pointer())


@compiled()
def configure_tiles(rows: int) -> None:
    """Give this thread's registers their shapes: inputs and sums have `rows` rows, weights all."""
    shapes = np.zeros(64, np.uint8)  # as Intel documents it
    shapes[0] = 1
    for register in range(8):
        shapes[16 + 2 * register] = ROW_BYTES
        shapes[48 + register] = TILE_ROWS if register in WEIGHTS else rows
    _configure(shapes)


@intrinsic
def _configure(_typing: Any, shapes: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = element_address(context, builder, signature.args[0], args[0], index(0))
        tile_call(builder, "ldtilecfg", address)
        return context.get_dummy_value()

    return types.void(shapes), codegen


@intrinsic
def release_tiles(_typing: Any) -> Any:
    """Give the registers back, which a thread that sleeps would keep."""

    def codegen(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        tile_call(builder, "tilerelease")
        return context.get_dummy_value()

    return types.void(), codegen
