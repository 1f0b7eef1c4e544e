"""The product of one or two rows with weights in tiles, on vectors.

For so few rows memory is what a product waits for, and vectors ask it for more at a time than tile
registers do. The sums are those of a tile to the last bit: as Intel documents TDPBF16PS, the even
and the odd inputs of a line have a chain of multiply-adds each, whose ends are added before they
join the sum of the lines. (A tile counts what is below 1.2e-38 as 0; no sum notices.)
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider.engine.compiling import compiled
from outrider.engine.kernels.formats.bfloat16 import widen_high, widen_low
from outrider.engine.kernels.formats.tiles import DEPTH, PARTS
from outrider.engine.kernels.next_panel import PLACES, ask_ahead
from outrider.engine.kernels.tile_registers import (
    ROW_BYTES,
    TILE_BYTES,
    TILE_LINE_BYTES,
    element_address,
)
from outrider.engine.kernels.vectors import (
    INDEX,
    INTEGERS,
    LANES,
    VECTOR,
    bytes_after,
    index,
    load,
    multiply_add,
    spread,
)

FEW_ROWS = 2

_PAIRS_PER_PLACE = DEPTH // 2 // PLACES
_HALVES, _PARTS = (0, 1), range(PARTS)
_PAIR = ir.IntType(32)
_NOTHING = ir.Constant(VECTOR, None)


class _Sum(NamedTuple):
    """Which of the sums of a panel: each is a vector."""

    row: int
    part: int
    half: int


def _product(rows: int) -> Any:
    """The function that multiplies so many `rows`."""
    which = [_Sum(*each) for each in product(range(rows), _PARTS, _HALVES)]

    @intrinsic
    def multiply(
        _typing: Any, panel: Any, following: Any, parts: Any, out: Any, column: Any
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def address(array: int, *places: Any) -> Any:
                kind = signature.args[array]
                return element_address(context, builder, kind, args[array], *places)

            zero = index(0)
            weights = address(0, zero, zero)
            after = address(1, zero, zero)
            inputs = [
                [address(2, index(part), index(row), zero) for part in _PARTS]
                for row in range(rows)
            ]
            made = context.make_array(signature.args[0])(context, builder, args[0])
            sums = {each: cgutils.alloca_once_value(builder, _NOTHING) for each in which}
            lines = builder.extract_value(made.shape, 0)
            with cgutils.for_range(builder, lines, intp=INDEX) as loop:
                line = bytes_after(
                    builder, weights, builder.mul(loop.index, index(TILE_LINE_BYTES))
                )
                done = builder.mul(loop.index, index(2 * DEPTH))
                here = [[bytes_after(builder, x, done) for x in row] for row in inputs]
                ask = partial(ask_ahead, builder, after, lines, loop.index)
                for each, added in _line_products(builder, line, here, ask).items():
                    builder.store(builder.fadd(builder.load(sums[each]), added), sums[each])
            for row, half in product(range(rows), _HALVES):
                first, second = (builder.load(sums[_Sum(row, part, half)]) for part in _PARTS)
                place = builder.add(args[4], index(half * LANES))
                to = builder.bitcast(address(3, index(row), place), VECTOR.as_pointer())
                builder.store(builder.fadd(first, second), to, align=4)
            return context.get_dummy_value()

        return types.void(panel, following, parts, out, types.intp), codegen

    return multiply


_one_row, _two_rows = _product(1), _product(2)


@compiled()
def few_rows_product(panel: Any, following: Any, parts: Any, out: Any, column: Any) -> None:
    """`out[:, column : column + PANEL] = x @ panel`, where `parts` [PARTS, R, K] are those of x.

    x has at most `FEW_ROWS` rows; `following` is the panel that is needed next.
    """
    rows = parts.shape[1]
    if rows == 1:
        _one_row(panel, following, parts, out, column)
    elif rows == FEW_ROWS:
        _two_rows(panel, following, parts, out, column)


def _line_products(
    builder: Any, line: Any, inputs: list[list[Any]], ask: Callable[[Any], None]
) -> dict[_Sum, Any]:
    """The products of a line of weights with the parts of each row, whose addresses are given.

    Between them `ask` emits the requests for what comes next, place after place.
    """
    chains: dict[tuple[_Sum, int], Any] = {}
    for pair in range(DEPTH // 2):
        if pair % _PAIRS_PER_PLACE == 0:
            ask(index(pair // _PAIRS_PER_PLACE))
        weights = []
        for half in _HALVES:
            at = bytes_after(builder, line, index(half * TILE_BYTES + pair * ROW_BYTES))
            weights.append(_widened(builder, load(builder, at, INTEGERS)))
        for row, part in product(range(len(inputs)), _PARTS):
            at = bytes_after(builder, inputs[row][part], index(4 * pair))
            word = builder.load(builder.bitcast(at, _PAIR.as_pointer()), align=2)
            numbers = _widened(builder, spread(builder, word))
            for half, parity in product(_HALVES, (0, 1)):
                which = _Sum(row, part, half), parity
                chain = chains.get(which, _NOTHING)
                chains[which] = multiply_add(builder, numbers[parity], weights[half][parity], chain)
    return {
        which: builder.fadd(chain, chains[which, 1])
        for (which, parity), chain in chains.items()
        if parity == 0
    }


def _widened(builder: Any, pairs: Any) -> tuple[Any, Any]:
    """The float32 of the first and of the second bfloat16 of each pair."""
    return widen_low(builder, pairs, VECTOR), widen_high(builder, pairs, VECTOR)
