"""Products with weights in tiles, on tile registers.

A tile multiplies 16 rows with 16 outputs at once, so that many rows cost little more than a few.
It takes bfloat16 on both sides; each float32 activation is therefore split into two bfloat16
numbers, which together have 16 of its 24 bits, twice as many as the weights. Each part has its own
float32 sums, in the same order whatever other rows there are, and they are added at the end.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider.engine.compiling import compiled
from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.formats.tiles import DEPTH, PARTS, TILE_ROWS
from outrider.engine.kernels.memory import aligned_empty
from outrider.engine.kernels.next_panel import PLACES, ask_ahead
from outrider.engine.kernels.tile_registers import (
    INPUTS,
    ROW_BYTES,
    SUMS,
    TILE_BYTES,
    TILE_LINE_BYTES,
    WEIGHTS,
    configure_tiles,
    element_address,
    tile_call,
)
from outrider.engine.kernels.vectors import (
    INDEX,
    INTEGERS,
    LANES,
    VECTOR,
    bytes_after,
    index,
    load,
)

_HALVES = ir.VectorType(ir.IntType(16), LANES)


@intrinsic
def _split(_typing: Any, x: Any, x_at: Any, parts: Any, at: Any, step: Any) -> Any:
    """Split the LANES numbers from `x_at` of `x`, in `parts` from `at` on, `step` apart.

    All places are in flat arrays.
    """
    place = types.intp

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, target = (
            context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 2)
        )
        numbers = load(builder, builder.gep(source, [args[1]]))
        store_parts(builder, numbers, builder.gep(target, [args[3]]), args[4])
        return context.get_dummy_value()

    return types.void(x, place, parts, place, place), codegen


def store_parts(builder: Any, numbers: Any, first: Any, step: Any) -> None:
    """Split a vector in two, at the address `first` and `step` numbers behind it.

    The first part is cut off, so that what is no number stays none; what is left is rounded to the
    nearest, and of two as near to the even one.
    """

    def everywhere(bits: int) -> Any:
        return ir.Constant(INTEGERS, [bits] * LANES)

    def store(bits: Any, address: Any) -> None:
        upper = builder.trunc(builder.lshr(bits, everywhere(16)), _HALVES)
        builder.store(upper, builder.bitcast(address, _HALVES.as_pointer()), align=2)

    bits = builder.bitcast(numbers, INTEGERS)
    store(bits, first)
    cut = builder.bitcast(builder.and_(bits, everywhere(0xFFFF0000)), VECTOR)
    rest = builder.bitcast(builder.fsub(numbers, cut), INTEGERS)
    odd = builder.and_(builder.lshr(rest, everywhere(16)), everywhere(1))
    rounded = builder.add(builder.add(rest, everywhere(0x7FFF)), odd)
    store(rounded, builder.gep(first, [step]))


@compiled()
def rows_of_block(rows: int) -> Any:
    """Return how many rows are multiplied at once: no more than that many blocks need.

    The last block begins so early that it is full: rows that are in two have one result in both.
    """
    return -(-rows // max(1, -(-rows // TILE_ROWS)))


@compiled()
def in_parts(x: Any, room: Any) -> Any:
    """Return `x` [R, K] in parts, uint16 [PARTS, R, K filled up with zeros], in `room`.

    This thread's tile registers are given their shapes for so many rows.
    """
    rows, depth = x.shape
    configure_tiles(max(1, rows_of_block(rows)))
    filled = depth + -depth % DEPTH
    whole = depth - depth % LANES
    step = rows * filled
    last = np.zeros(LANES, np.float32)
    for r in range(rows):
        line = r * filled
        for k in range(0, whole, LANES):
            _split(x, r * depth + k, room, line + k, step)
        if whole < filled:
            last[: depth - whole] = x[r, whole:]
            _split(last, 0, room, line + whole, step)
        for k in range(whole + LANES, filled):
            for part in range(PARTS):
                room[part * step + line + k] = 0
    return room[: PARTS * step].reshape(PARTS, rows, filled)


@compiled()
def tile_product(panel: Any, following: Any, parts: Any, out: Any, column: Any) -> None:
    """`out[:, column : column + PANEL] = x @ panel`, where `parts` are what `in_parts` makes of x.

    `following` is the panel that is needed next.
    """
    rows = parts.shape[1]
    size = rows_of_block(rows)
    numbers = len(SUMS) * TILE_ROWS * PANEL
    sums = aligned_empty(numbers, np.float32).reshape(len(SUMS), TILE_ROWS, PANEL)
    blocks = -(-rows // TILE_ROWS)
    for block in range(blocks):
        first = min(block * size, rows - size)
        # Each block asks for its share of the next panel, so that none waits for memory longer.
        places = PLACES * block // blocks, PLACES * (block + 1) // blocks
        _sum_products(panel, following, places, parts, first, sums)
        _add_sums(sums, size, out, first, np.int64(column))


@intrinsic
def _sum_products(
    _typing: Any, panel: Any, following: Any, places: Any, parts: Any, first: Any, sums: Any
) -> Any:
    """`sums` [PARTS, TILE_ROWS, PANEL] = a block of rows of `parts`, from `first`, times a panel.

    The tiles are configured for the rows of a block. `places` are the first and the end of those
    in which it asks for what is `following`.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def address(array: int, *places: Any) -> Any:
            return element_address(context, builder, signature.args[array], args[array], *places)

        def length(array: int, axis: int) -> Any:
            made = context.make_array(signature.args[array])(context, builder, args[array])
            return builder.extract_value(made.shape, axis)

        zero = index(0)
        tiles = address(0, zero, zero)
        rows = [address(3, index(part), args[4], zero) for part in range(PARTS)]
        row_bytes = builder.mul(length(3, 2), index(2))
        after = address(1, zero, zero)
        begin, end = (builder.extract_value(args[2], i) for i in (0, 1))
        for register in (*SUMS[0], *SUMS[1]):
            tile_call(builder, "tilezero", register)
        lines = length(0, 0)
        with cgutils.for_range(builder, lines, intp=INDEX) as loop:
            line = bytes_after(builder, tiles, builder.mul(loop.index, index(TILE_LINE_BYTES)))
            with cgutils.for_range_slice(builder, begin, end, index(1), INDEX) as (place, _):
                ask_ahead(builder, after, lines, loop.index, place)
            for half, register in enumerate(WEIGHTS):
                tile = bytes_after(builder, line, index(half * TILE_BYTES))
                tile_call(builder, "tileloadd64", register, tile, index(ROW_BYTES))
            done = builder.mul(loop.index, index(2 * DEPTH))
            _add_products(builder, [bytes_after(builder, row, done) for row in rows], row_bytes)
        for which, registers in enumerate(SUMS):
            for half, register in enumerate(registers):
                at = address(5, index(which), zero, index(half * LANES))
                tile_call(builder, "tilestored64", register, at, index(4 * PANEL))
        return context.get_dummy_value()

    return types.void(panel, following, places, parts, types.intp, sums), codegen


def _add_products(builder: Any, rows: Sequence[Any], row_bytes: Any) -> None:
    """Add to the sums the products of the loaded weights with each part of the rows."""
    for first, part, sums in zip(rows, INPUTS, SUMS, strict=True):
        tile_call(builder, "tileloadd64", part, first, row_bytes)
        for register, weights in zip(sums, WEIGHTS, strict=True):
            tile_call(builder, "tdpbf16ps", register, part, weights)


@intrinsic
def _add_sums(_typing: Any, sums: Any, rows: Any, out: Any, row: Any, column: Any) -> Any:
    """A block of `out`, of `rows` rows from [row, column] on, = both of `sums` together."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def address(array: int, *places: Any) -> Any:
            return element_address(context, builder, signature.args[array], args[array], *places)

        with cgutils.for_range(builder, args[1], intp=INDEX) as loop:
            for lane in (index(half * LANES) for half in range(PANEL // LANES)):
                first, second = (
                    load(builder, address(0, index(which), loop.index, lane)) for which in (0, 1)
                )
                to = address(2, builder.add(args[3], loop.index), builder.add(args[4], lane))
                pointer = builder.bitcast(to, VECTOR.as_pointer())
                builder.store(builder.fadd(first, second), pointer, align=4)
        return context.get_dummy_value()

    return types.void(sums, types.intp, out, types.intp, types.intp), codegen
