"""bfloat16 weights for a CPU with tile registers (Intel AMX), and the products with them.

A tile multiplies 16 rows with 16 outputs at once, so that several rows cost little more than one.
It takes bfloat16 on both sides: each activation is split into two bfloat16 numbers whose sum has 16
of its 24 bits, and each part has its own sums in float32, added at the end. A row's sums run in the
same order whatever other rows there are.
"""

import ctypes
import platform
from functools import cache
from typing import Any

import numpy as np
import torch
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider.engine.compiling import compiled
from outrider.engine.kernels.formats.base import PANEL, Array
from outrider.engine.kernels.vectors import (
    INDEX,
    INTEGERS,
    LANES,
    VECTOR,
    bytes_after,
    index,
    load,
    prefetch,
)

DEPTH = 32
"""Inputs of a tile of weights, in pairs."""
TILE_ROWS = 16
TILE_OUTPUTS = 16
_LINE = 64
"""Bytes in a row of any tile, and in a cache line."""
_TILE_BYTES = TILE_ROWS * _LINE
_AHEAD_BYTES = 8192

_BYTE = ir.IntType(8)
_BYTES = _BYTE.as_pointer()
_HALVES = ir.VectorType(ir.IntType(16), LANES)
_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18
"""Linux gives a process the tile registers only when it asks for them."""

_SUMS, _ROWS, _WEIGHTS = ((0, 1), (2, 3)), (4, 5), (6, 7)
"""Tile registers: sums of a part of the activations for each half panel; the parts; the weights."""


@cache
def tiles_available() -> bool:
    """Whether this process may use tile registers for bfloat16."""
    features = binding.get_host_cpu_features()
    if not (features.get("amx-bf16") and features.get("amx-tile")):
        return False
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0


class BFloat16Tiles:
    """A line holds 32 inputs: two tiles, of 16 outputs each, with the inputs in pairs side by side.

    `tile_product` reads it.
    """

    stored = types.uint16
    bits_per_weight = 16.0

    def pack(self, panels: torch.Tensor) -> Array:
        """See `WeightFormat.pack`; rounds to the nearest."""
        count, depth, _ = panels.shape
        filled = torch.nn.functional.pad(panels, (0, 0, 0, -depth % DEPTH)).bfloat16()
        pairs = filled.view(count, -1, DEPTH // 2, 2, 2, TILE_OUTPUTS)  # k / 2, k % 2, half, output
        tiles = pairs.permute(0, 1, 4, 2, 5, 3).reshape(count, -1, DEPTH * PANEL)
        array: Array = tiles.contiguous().view(torch.int16).numpy().view(np.uint16)
        return array


def _call(builder: Any, name: str, *args: Any) -> None:
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.VoidType(), [arg.type for arg in args]),
        f"llvm.x86.{name}",
    )
    builder.call(function, args)


def _tile(register: int) -> Any:
    return ir.Constant(_BYTE, register)


def _address(context: Any, builder: Any, kind: Any, array: Any, *places: Any) -> Any:
    """The address, as bytes, of an element of a C-contiguous array."""
    made = context.make_array(kind)(context, builder, array)
    at = index(0)
    for axis, place in enumerate(places):
        at = builder.add(builder.mul(at, builder.extract_value(made.shape, axis)), place)
    return builder.bitcast(builder.gep(made.data, [at]), _BYTES)


@intrinsic
def configure(_typing: Any, shapes: Any) -> Any:
    """Give this thread's tile registers the `shapes` that `tile_shapes` describes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _call(
            builder, "ldtilecfg", _address(context, builder, signature.args[0], args[0], index(0))
        )
        return context.get_dummy_value()

    return types.void(shapes), codegen


@intrinsic
def release(_typing: Any) -> Any:
    """Give the tile registers back, which a thread that sleeps would keep."""

    def codegen(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        _call(builder, "tilerelease")
        return context.get_dummy_value()

    return types.void(), codegen


@compiled()
def tile_shapes(rows: int) -> Any:
    """Return the 64 bytes that describe tiles for `rows` rows, as Intel documents them."""
    shapes = np.zeros(64, np.uint8)
    shapes[0] = 1
    for register in range(8):
        shapes[16 + 2 * register] = _LINE
        shapes[48 + register] = rows if register < 6 else TILE_ROWS  # noqa: PLR2004
    return shapes


@intrinsic
def _split(_typing: Any, x: Any, x_at: Any, parts: Any, high_at: Any, low_at: Any) -> Any:
    """Split the LANES numbers from `x_at` of `x` in two, into `parts`; all places are flat.

    The first part is cut off, the second rounded to the nearest, and of two as near to the even one.
    """
    place = types.intp

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def constant(value: int) -> Any:
            return ir.Constant(INTEGERS, [value] * LANES)

        def store(bits: Any, at: Any) -> None:
            upper = builder.trunc(builder.lshr(bits, constant(16)), _HALVES)
            address = builder.gep(context.make_array(parts)(context, builder, args[2]).data, [at])
            builder.store(upper, builder.bitcast(address, _HALVES.as_pointer()), align=2)

        source = context.make_array(x)(context, builder, args[0])
        numbers = load(builder, builder.gep(source.data, [args[1]]))
        bits = builder.bitcast(numbers, INTEGERS)
        cut = builder.bitcast(builder.and_(bits, constant(0xFFFF0000)), VECTOR)
        rest = builder.bitcast(builder.fsub(numbers, cut), INTEGERS)
        odd = builder.and_(builder.lshr(rest, constant(16)), constant(1))
        store(bits, args[3])
        store(builder.add(builder.add(rest, constant(0x7FFF)), odd), args[4])
        return context.get_dummy_value()

    return types.void(x, place, parts, place, place), codegen


@compiled()
def in_parts(x: Any, room: Any) -> Any:
    """Return `x` [R, K] in two parts, uint16 [2, R, K filled up with zeros], in `room`.

    This thread's tile registers are given their shapes for so many rows.
    """
    rows, depth = x.shape
    configure(tile_shapes(max(1, min(rows, TILE_ROWS))))
    filled = depth + -depth % DEPTH
    whole = depth - depth % LANES
    last = np.zeros(LANES, np.float32)
    for r in range(rows):
        high, low = r * filled, (rows + r) * filled
        for k in range(0, whole, LANES):
            _split(x, r * depth + k, room, high + k, low + k)
        last[: depth - whole] = x[r, whole:]
        if whole < filled:
            _split(last, 0, room, high + whole, low + whole)
        for k in range(whole + LANES, filled):
            room[high + k] = room[low + k] = 0
    return room[: 2 * rows * filled].reshape(2, rows, filled)


@compiled()
def place_in_tiles(output: Any, k: Any) -> Any:
    """Return where in its line the weight of input `k` of the line and `output` of the panel is."""
    row = output // TILE_OUTPUTS * TILE_ROWS + k // 2
    return row * (_LINE // 2) + output % TILE_OUTPUTS * 2 + k % 2


@intrinsic
def _multiply_tiles(
    _typing: Any,
    panel: Any,
    parts: Any,
    first: Any,
    rows: Any,
    sums: Any,
    out: Any,
    column: Any,
) -> Any:
    """`out[first : first + rows, column : column + PANEL]` = the same rows of `parts` times a panel.

    The tiles are configured for as many rows. `sums` [2, TILE_ROWS, PANEL] is overwritten.
    """
    signature = types.void(panel, parts, types.intp, types.intp, sums, out, types.intp)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args

        def address(array: int, *places: Any) -> Any:
            return _address(context, builder, kinds[array], args[array], *places)

        def stride(array: int) -> Any:
            """Bytes from one row of the last axis to the next."""
            made = context.make_array(kinds[array])(context, builder, args[array])
            count = builder.extract_value(made.shape, kinds[array].ndim - 1)
            return builder.mul(count, index(kinds[array].dtype.bitwidth // 8))

        zero = index(0)
        tiles, lines = address(0, zero, zero), _length(context, builder, kinds[0], args[0])
        inputs = [address(1, index(part), args[2], zero) for part in range(2)]
        for registers in _SUMS:
            for register in registers:
                _call(builder, "tilezero", _tile(register))
        with cgutils.for_range(builder, lines, intp=INDEX) as loop:
            line = bytes_after(builder, tiles, builder.mul(loop.index, index(2 * _TILE_BYTES)))
            for at in range(0, 2 * _TILE_BYTES, _LINE):
                prefetch(builder, bytes_after(builder, line, index(_AHEAD_BYTES + at)))
            for half, register in enumerate(_WEIGHTS):
                tile = bytes_after(builder, line, index(half * _TILE_BYTES))
                _call(builder, "tileloadd64", _tile(register), tile, index(_LINE))
            for part, register in enumerate(_ROWS):
                at = bytes_after(builder, inputs[part], builder.mul(loop.index, index(2 * DEPTH)))
                _call(builder, "tileloadd64", _tile(register), at, stride(1))
                for half, weights in enumerate(_WEIGHTS):
                    total = _tile(_SUMS[part][half])
                    _call(builder, "tdpbf16ps", total, _tile(register), _tile(weights))
        for part in range(2):
            for half in range(2):
                at = address(4, index(part), zero, index(half * TILE_OUTPUTS))
                _call(builder, "tilestored64", _tile(_SUMS[part][half]), at, stride(4))
        with cgutils.for_range(builder, args[3], intp=INDEX) as loop:
            for half in range(2):
                lanes = index(half * LANES)
                both = [
                    load(builder, address(4, index(part), loop.index, lanes)) for part in (0, 1)
                ]
                to = address(5, builder.add(args[2], loop.index), builder.add(args[6], lanes))
                pointer = builder.bitcast(to, VECTOR.as_pointer())
                builder.store(builder.fadd(*both), pointer, align=4)
        return context.get_dummy_value()

    return signature, codegen


def _length(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """How long the first axis of an array is."""
    return builder.extract_value(context.make_array(kind)(context, builder, array).shape, 0)


@compiled()
def tile_product(panel: Any, parts: Any, out: Any, column: Any) -> None:
    """`out[:, column : column + PANEL] = x @ panel`, where `parts` are what `in_parts` makes of x.

    With more rows than a tile has, the last block begins so early that it is full: rows that are in
    two blocks have the same result in both.
    """
    rows = parts.shape[1]
    size = min(rows, TILE_ROWS)
    sums = np.empty((2, TILE_ROWS, PANEL), np.float32)
    for start in range(0, rows, TILE_ROWS):
        first = min(start, rows - size)
        _multiply_tiles(panel, parts, first, size, sums, out, np.int64(column))
