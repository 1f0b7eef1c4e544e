"""The one vector kernel: a small block of a matrix product, its sums held in registers.

Written in LLVM's vector types, which every CPU that numba targets can lower; numba's own
vectorizer neither keeps a block's accumulators in registers nor prefetches.

Every output is one chain of fused multiply-adds over k = 0 … depth-1, whatever the number of rows.
A row's result is therefore bit for bit the same alone and in a batch, which makes speculative
decoding on these kernels reproduce plain decoding exactly.
"""

from dataclasses import dataclass
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
"""float32 values in one vector."""

SUM_VECTORS = 24 if binding.get_host_cpu_features().get("avx512f") else 4
"""Vectors of sums that stay in registers.

Of 32 registers as wide, or of 16 that hold a half (AVX2) or 32 that hold a quarter (NEON): beside 6
there, two vectors of weights and a row's input do not fit. On AVX2 that halved the speed or worse.
"""

_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_PAIRS = ir.VectorType(ir.IntType(32), LANES)
_INDEX = ir.IntType(64)
_INT32 = ir.IntType(32)
_BYTES = ir.IntType(8).as_pointer()


def _index(value: int) -> Any:
    return ir.Constant(_INDEX, value)


def _widen_low(builder: Any, pairs: Any, wide: Any) -> Any:
    """The float32 of the bfloat16 in the low half of each 32-bit integer: its bits on top."""
    shift = ir.Constant(pairs.type, 16 if wide is _FLOAT else [16] * LANES)
    return builder.bitcast(builder.shl(pairs, shift), wide)


def _widen_high(builder: Any, pairs: Any, wide: Any) -> Any:
    """The float32 of the bfloat16 in the high half, which stands where it must already."""
    mask = ir.Constant(pairs.type, 0xFFFF0000 if wide is _FLOAT else [0xFFFF0000] * LANES)
    return builder.bitcast(builder.and_(pairs, mask), wide)


def _spread(builder: Any, scalar: Any) -> Any:
    """A vector with `scalar` in every lane."""
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_INT32, 0))
    every_lane = ir.Constant(ir.VectorType(_INT32, LANES), None)
    return builder.shuffle_vector(first, undefined, every_lane)


def _prefetch(builder: Any, address: Any) -> None:
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.VoidType(), [_BYTES, _INT32, _INT32, _INT32]),
        "llvm.prefetch.p0",
    )
    read, keep, data = (ir.Constant(_INT32, flag) for flag in (0, 3, 1))
    builder.call(function, [address, read, keep, data])


def _multiply_add(builder: Any, a: Any, b: Any, total: Any) -> Any:
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), f"llvm.fma.v{LANES}f32"
    )
    return builder.call(function, [a, b, total])


@intrinsic
def as_float32(_typing: Any, value: Any, half: Any) -> Any:
    """One stored weight as float32: itself, or the low (0) or high (1) half of a pair."""

    def codegen(_context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if signature.args[0] != types.uint32:
            return args[0]
        low = _widen_low(builder, args[0], _FLOAT)
        high = _widen_high(builder, args[0], _FLOAT)
        return builder.select(builder.icmp_signed("==", args[1], _index(0)), low, high)

    return types.float32(value, types.intp), codegen


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
    vectors: Any,
    more: Any,
    ahead: Any,
) -> Any:
    """A block of `out` = a block of `x` times a block of `matrix`; all 2-D and C-contiguous.

    Where `more` is true the sums go on from what `out` holds. A depth split over several calls so
    is the same chain of operations as in one: storing a float32 and loading it changes nothing.
    While a weight is used, the one `ahead` bytes behind it is asked for.

    The blocks begin at the given rows and columns (`matrix` at row 0) and are [rows, W], [rows,
    depth] and [depth, W], with W = vectors x LANES, `vectors` a literal and 1 <= rows <=
    SUM_VECTORS / vectors: each such shape is compiled with its sums in registers. `matrix` holds
    float32 or pairs of bfloat16 in uint32, as `panel.pack` makes them: [depth, W / 2], `vectors`
    even; the others float32. Nothing is bounds-checked.
    """
    if not isinstance(vectors, types.IntegerLiteral):
        return None
    width = vectors.literal_value
    numbers = (types.intp, types.intp)
    # The literal stays in the signature: numba keeps one compiled body for each signature.
    numbers_after = (types.intp, vectors, types.boolean, types.intp)
    signature = types.void(matrix, *numbers, x, *numbers, out, *numbers, *numbers_after)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        weights, inputs, outputs = (
            context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 3, 6)
        )
        block = _Block(
            dtype=signature.args[0].dtype,
            vectors=width,
            weights=_element(builder, weights, _index(0), args[1]),
            weights_stride=builder.extract_value(weights.shape, 1),
            depth=args[2],
            inputs=_element(builder, inputs, args[4], args[5]),
            inputs_stride=builder.extract_value(inputs.shape, 1),
            outputs=_element(builder, outputs, args[7], args[8]),
            outputs_stride=builder.extract_value(outputs.shape, 1),
            more=args[11],
            ahead=args[12],
        )
        done = builder.append_basic_block("done")
        choice = builder.switch(args[9], done)
        for count in range(1, SUM_VECTORS // width + 1):
            case = builder.append_basic_block(f"rows{count}")
            choice.add_case(_index(count), case)
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

    dtype: Any
    vectors: int
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
        width = self.vectors
        sums = [
            [cgutils.alloca_once_value(builder, self._first(builder, r, v)) for v in range(width)]
            for r in range(rows)
        ]
        with cgutils.for_range(builder, self.depth, intp=_INDEX) as loop:
            parts = self._weights(builder, loop.index)
            for r in range(rows):
                at = builder.add(builder.mul(self.inputs_stride, _index(r)), loop.index)
                scalar = _spread(builder, builder.load(builder.gep(self.inputs, [at])))
                for v, part in enumerate(parts):
                    total = _multiply_add(builder, scalar, part, builder.load(sums[r][v]))
                    builder.store(total, sums[r][v])
        for r in range(rows):
            for v in range(width):
                builder.store(builder.load(sums[r][v]), self._output(builder, r, v), align=4)

    def _output(self, builder: Any, row: int, vector: int) -> Any:
        """The address of one vector of the result."""
        at = builder.add(builder.mul(self.outputs_stride, _index(row)), _index(vector * LANES))
        return builder.bitcast(builder.gep(self.outputs, [at]), _VECTOR.as_pointer())

    def _first(self, builder: Any, row: int, vector: int) -> Any:
        """What one vector of sums begins with."""
        held = builder.load(self._output(builder, row, vector), align=4)
        return builder.select(self.more, held, ir.Constant(_VECTOR, None))

    def _weights(self, builder: Any, k: Any) -> list[Any]:
        """The vectors of row `k`, the same row some way ahead being asked for."""
        paired = self.dtype == types.uint32
        loads = self.vectors // 2 if paired else self.vectors
        stored = _PAIRS if paired else _VECTOR
        line = builder.gep(self.weights, [builder.mul(k, self.weights_stride)])
        vectors = []
        for load in range(loads):
            address = builder.gep(line, [_index(load * LANES)])
            ahead = builder.gep(builder.bitcast(address, _BYTES), [self.ahead])
            _prefetch(builder, ahead)
            value = builder.load(builder.bitcast(address, stored.as_pointer()), align=4)
            if paired:
                vectors.append(_widen_low(builder, value, _VECTOR))
                vectors.append(_widen_high(builder, value, _VECTOR))
            else:
                vectors.append(value)
        return vectors
