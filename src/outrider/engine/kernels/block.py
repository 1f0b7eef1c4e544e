"""The one vector kernel: a small block of a matrix product, its sums held in registers.

Every output is one chain of fused multiply-adds over k = 0 … depth-1, whatever the number of rows.
A row's result is therefore bit for bit the same alone and in a batch, which makes speculative
decoding on these kernels reproduce plain decoding exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider.engine.kernels.formats.base import VectorFormat
from outrider.engine.kernels.formats.bfloat16 import widen_high, widen_low
from outrider.engine.kernels.formats.registry import FORMAT_OF
from outrider.engine.kernels.vectors import (
    FLOAT,
    INDEX,
    LANES,
    VECTOR,
    index,
    load,
    multiply_add,
    spread,
)

MOST_ROWS = 12 if binding.get_host_cpu_features().get("avx512f") else 2
"""Rows whose sums stay in registers, two vectors each.

Of 32 registers as wide, or of 16 that hold a half (AVX2) or 32 that hold a quarter (NEON): beside 6
sums there, two vectors of weights and a row's input do not fit. On AVX2 that halved the speed or
worse.
"""


@intrinsic
def as_float32(_typing: Any, value: Any, half: Any) -> Any:
    """One stored weight as float32: itself, or the low (0) or high (1) half of a pair."""

    def codegen(_context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if signature.args[0] != types.uint32:
            return args[0]
        low = widen_low(builder, args[0], FLOAT)
        high = widen_high(builder, args[0], FLOAT)
        return builder.select(builder.icmp_signed("==", args[1], index(0)), low, high)

    return types.float32(value, types.intp), codegen


@intrinsic
def inputs_per_line(_typing: Any, matrix: Any) -> Any:
    """How many inputs each line of a packed `matrix` holds, int64."""

    def codegen(_context: Any, _builder: Any, signature: Any, _args: Any) -> Any:
        return index(FORMAT_OF[signature.args[0].dtype].inputs_per_line)

    return types.intp(matrix), codegen


@intrinsic
def multiply_block(
    _typing: Any,
    matrix: Any,
    matrix_column: Any,
    depth: Any,
    x: Any,
    x_row: Any,
    x_column: Any,
    out: Any,
    out_row: Any,
    out_column: Any,
    rows: Any,
    more: Any,
    ahead: Any,
) -> Any:
    """A block of `out` = a block of `x` times a block of `matrix`; all 2-D and C-contiguous.

    Where `more` is true the sums go on from what `out` holds. A depth split over several calls so
    is the same chain of operations as in one: storing a float32 and loading it changes nothing.
    While a weight is used, the one `ahead` bytes behind it is asked for.

    The blocks begin at the given rows and columns (`matrix` at its first line) and are [rows,
    PANEL], [rows, depth] and [depth, PANEL], with 1 <= rows <= MOST_ROWS: each number of rows is
    compiled with its sums in registers. `matrix` is in one of the `FORMATS`, the others are
    float32. Nothing is bounds-checked.
    """
    numbers = (types.intp, types.intp)
    signature = types.void(
        matrix, *numbers, x, *numbers, out, *numbers, types.intp, types.boolean, types.intp
    )

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        weights, inputs, outputs = (
            context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 3, 6)
        )
        block = _Block(
            format=FORMAT_OF[signature.args[0].dtype],
            weights=_element(builder, weights, index(0), args[1]),
            weights_stride=builder.extract_value(weights.shape, 1),
            depth=args[2],
            inputs=_element(builder, inputs, args[4], args[5]),
            inputs_stride=builder.extract_value(inputs.shape, 1),
            outputs=_element(builder, outputs, args[7], args[8]),
            outputs_stride=builder.extract_value(outputs.shape, 1),
            more=args[10],
            ahead=args[11],
        )
        done = builder.append_basic_block("done")
        choice = builder.switch(args[9], done)
        for count in range(1, MOST_ROWS + 1):
            case = builder.append_basic_block(f"rows{count}")
            choice.add_case(index(count), case)
            builder.position_at_end(case)
            block.emit(builder, count)
            builder.branch(done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return signature, codegen


def _element(builder: Any, array: Any, row: Any, column: Any) -> Any:
    """The address of `array[row, column]`."""
    width = builder.extract_value(array.shape, 1)
    return builder.gep(array.data, [builder.add(builder.mul(row, width), column)])


@dataclass(frozen=True, slots=True)
class _Block:
    """The LLVM values of a block product: addresses of first elements, strides in elements."""

    format: VectorFormat
    weights: Any
    weights_stride: Any
    depth: Any
    inputs: Any
    inputs_stride: Any
    outputs: Any
    outputs_stride: Any
    more: Any
    ahead: Any

    def emit(self, builder: Any, rows: int) -> None:
        """The code of the product for `rows` rows."""
        sums = [
            [cgutils.alloca_once_value(builder, self._first(builder, row, part)) for part in (0, 1)]
            for row in range(rows)
        ]
        per_line = self.format.inputs_per_line
        last = builder.add(self.depth, index(per_line - 1))
        with cgutils.for_range(builder, builder.sdiv(last, index(per_line)), intp=INDEX) as lines:
            at = builder.mul(lines.index, self.weights_stride)
            line = builder.gep(self.weights, [at])
            opened = self.format.open_line(builder, line, self.ahead)
            if per_line == 1:
                self._add(builder, sums, line, opened, index(0), lines.index)
            else:
                first = builder.mul(lines.index, index(per_line))
                left = builder.sub(self.depth, first)
                full = builder.icmp_signed("<", index(per_line), left)
                count = builder.select(full, index(per_line), left)
                with cgutils.for_range(builder, count, intp=INDEX) as inputs:
                    k = builder.add(first, inputs.index)
                    self._add(builder, sums, line, opened, inputs.index, k)
        for row, parts in enumerate(sums):
            for part, total in enumerate(parts):
                builder.store(builder.load(total), self._output(builder, row, part), align=4)

    def _add(
        self,
        builder: Any,
        sums: Sequence[Sequence[Any]],
        line: Any,
        opened: tuple[Any, ...],
        k_of_line: Any,
        k: Any,
    ) -> None:
        """Add the products of one input to the sums."""
        weights = self.format.read(builder, line, opened, k_of_line, self.ahead)
        for row, parts in enumerate(sums):
            at = builder.add(builder.mul(self.inputs_stride, index(row)), k)
            scalar = spread(builder, builder.load(builder.gep(self.inputs, [at])))
            for total, weight in zip(parts, weights, strict=True):
                added = multiply_add(builder, scalar, weight, builder.load(total))
                builder.store(added, total)

    def _output(self, builder: Any, row: int, part: int) -> Any:
        """The address of one vector of the result."""
        at = builder.add(builder.mul(self.outputs_stride, index(row)), index(part * LANES))
        return builder.bitcast(builder.gep(self.outputs, [at]), VECTOR.as_pointer())

    def _first(self, builder: Any, row: int, part: int) -> Any:
        """What one vector of sums begins with."""
        held = load(builder, self._output(builder, row, part))
        return builder.select(self.more, held, ir.Constant(VECTOR, None))
