"""Attention's products on tile registers.

A tile's product takes three times as long as the next one has to wait for it where both add to the
same sums. There are therefore four of these at a time: for the halves of both panels of a block of
keys, and for the halves of one panel of values in each part of the weights.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider.engine.compiling import compiled
from outrider.engine.kernels.arguments import SPAN
from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.formats.tiles import DEPTH, PARTS, TILE_ROWS
from outrider.engine.kernels.memory import aligned_empty
from outrider.engine.kernels.softmax import emit_exponentials, unseen_around
from outrider.engine.kernels.tile_product import store_parts
from outrider.engine.kernels.tile_registers import (
    INPUTS,
    ROW_BYTES,
    SUMS,
    TILE_BYTES,
    TILE_LINE_BYTES,
    WEIGHTS,
    element_address,
    tile_call,
)
from outrider.engine.kernels.vectors import INDEX, LANES, bytes_after, index

_EACH_SUM = (*SUMS[0], *SUMS[1])


@intrinsic
def score_block(_typing: Any, span: Any, parts: Any, row: Any, scores: Any, column: Any) -> Any:
    """`scores` [R, C], from `row` and `column` on, = a block of rows of queries times one of keys.

    `span` are the keys [SPAN / PANEL, lines, elements], `parts` [PARTS, R, lines DEPTH] the
    queries; there are as many rows as the tiles are configured for, and SPAN columns.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        operands = _Operands(context, builder, signature, args)
        rows = [operands.address(1, index(part), args[2], index(0)) for part in range(PARTS)]
        row_bytes = builder.mul(operands.length(1, 2), index(2))
        panels = [operands.address(0, index(p), index(0), index(0)) for p in range(SPAN // PANEL)]
        _clear(builder)
        with cgutils.for_range(builder, operands.length(0, 1), intp=INDEX) as loop:
            line = builder.mul(loop.index, index(TILE_LINE_BYTES))
            done = builder.mul(loop.index, index(2 * DEPTH))
            for first, register in zip(rows, INPUTS, strict=True):
                place = bytes_after(builder, first, done)
                tile_call(builder, "tileloadd64", register, place, row_bytes)
            for panel, sums in zip(panels, SUMS, strict=True):
                for half, register in enumerate(sums):
                    tile = bytes_after(builder, panel, builder.add(line, index(half * TILE_BYTES)))
                    tile_call(builder, "tileloadd64", WEIGHTS[half], tile, index(ROW_BYTES))
                    for part in INPUTS:
                        tile_call(builder, "tdpbf16ps", register, part, WEIGHTS[half])
        score_bytes = builder.mul(operands.length(3, 1), index(4))
        for number, register in enumerate(_EACH_SUM):
            at = operands.address(3, args[2], builder.add(args[4], index(number * LANES)))
            tile_call(builder, "tilestored64", register, at, score_bytes)
        return context.get_dummy_value()

    return types.void(span, parts, types.intp, scores, types.intp), codegen


@compiled()
def weigh(scores: Any, row: int, start: int, end: int, scale: Any, weights: Any) -> Any:
    """Turn scores into `weights` [PARTS, R, tokens], with 0 for what the row does not see.

    Return what they add up to, and spoil the scores. See `exponentials`.
    """
    first, last = unseen_around(scores, row, start, end)
    for part in range(PARTS):
        weights[part, row, :first] = np.uint16(0)
        weights[part, row, last:] = np.uint16(0)
    return _weigh(scores, row, first, last, scale, weights)


@intrinsic
def _weigh(
    _typing: Any, scores: Any, row: Any, first: Any, last: Any, scale: Any, weights: Any
) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        operands = _Operands(context, builder, signature, args)
        start = builder.bitcast(operands.address(0, args[1], args[2]), ir.FloatType().as_pointer())
        to = builder.bitcast(
            operands.address(5, index(0), args[1], args[2]), ir.IntType(16).as_pointer()
        )
        step = builder.mul(operands.length(5, 1), operands.length(5, 2))

        def keep(power: Any, at: Any) -> None:
            store_parts(builder, power, builder.gep(to, [at]), step)

        return emit_exponentials(builder, start, builder.sub(args[3], args[2]), args[4], keep)

    numbers = (types.intp, types.intp, types.intp, types.float32)
    return types.float32(scores, *numbers, weights), codegen


@compiled()
def sum_values(
    values: Any, g: int, table: Any, weights: Any, row: int, size: int, out: Any
) -> None:
    """`out` [R, D in whole panels], from `row` on, = `size` rows of weights times their values.

    `values` are all blocks of cache head `g`, of which `table` has those that are weighed.
    """
    sums = aligned_empty(PARTS * TILE_ROWS * PANEL, np.float32).reshape(PARTS, TILE_ROWS, PANEL)
    for p in range(values.shape[2]):
        _begin_sums()
        for b in range(table.shape[0]):
            _add_values(values[table[b], g, p], weights, row, b * SPAN)
        _end_sums(sums)
        for r in range(size):
            first, second = sums[0, r], sums[1, r]
            held = out[row + r, p * PANEL : (p + 1) * PANEL]
            for i in range(PANEL):
                held[i] = first[i] + second[i]


@intrinsic
def _begin_sums(_typing: Any) -> Any:
    def codegen(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        _clear(builder)
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def _add_values(_typing: Any, panel: Any, parts: Any, row: Any, column: Any) -> Any:
    """Add to the sums a block of `parts` [PARTS, R, C], at `row` and `column`, times a panel."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        operands = _Operands(context, builder, signature, args)
        tiles = operands.address(0, index(0), index(0))
        rows = [operands.address(1, index(part), args[2], args[3]) for part in range(PARTS)]
        row_bytes = builder.mul(operands.length(1, 2), index(2))
        for line in range(SPAN // DEPTH):
            for half, register in enumerate(WEIGHTS):
                tile = bytes_after(
                    builder, tiles, index(line * TILE_LINE_BYTES + half * TILE_BYTES)
                )
                tile_call(builder, "tileloadd64", register, tile, index(ROW_BYTES))
            for first, part, sums in zip(rows, INPUTS, SUMS, strict=True):
                place = bytes_after(builder, first, index(line * 2 * DEPTH))
                tile_call(builder, "tileloadd64", part, place, row_bytes)
                for register, weights in zip(sums, WEIGHTS, strict=True):
                    tile_call(builder, "tdpbf16ps", register, part, weights)
        return context.get_dummy_value()

    return types.void(panel, parts, types.intp, types.intp), codegen


@intrinsic
def _end_sums(_typing: Any, sums: Any) -> Any:
    """Write the sums to `sums` [PARTS, TILE_ROWS, PANEL]."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        operands = _Operands(context, builder, signature, args)
        for which, registers in enumerate(SUMS):
            for half, register in enumerate(registers):
                at = operands.address(0, index(which), index(0), index(half * LANES))
                tile_call(builder, "tilestored64", register, at, index(4 * PANEL))
        return context.get_dummy_value()

    return types.void(sums), codegen


class _Operands:
    """The arrays among an intrinsic's arguments, by their place."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self._context, self._builder = context, builder
        self._kinds, self._args = signature.args, args

    def address(self, array: int, *places: Any) -> Any:
        return element_address(
            self._context, self._builder, self._kinds[array], self._args[array], *places
        )

    def length(self, array: int, axis: int) -> Any:
        made = self._context.make_array(self._kinds[array])
        view = made(self._context, self._builder, self._args[array])
        return self._builder.extract_value(view.shape, axis)


def _clear(builder: Any) -> None:
    for register in _EACH_SUM:
        tile_call(builder, "tilezero", register)
