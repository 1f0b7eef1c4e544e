"""bfloat16 weights, widened in registers: half the traffic of float32, on any CPU."""

from typing import Any

import torch
from llvmlite import ir
from numba import types

from outrider.engine.kernels.formats.base import Array, OneInputLines
from outrider.engine.kernels.vectors import (
    FLOAT,
    INTEGERS,
    LANES,
    VECTOR,
    bytes_after,
    load,
    prefetch,
)


class BFloat16(OneInputLines):
    """A line holds one input, as LANES pairs in uint32.

    Output j is the low half of number j, output j + LANES the high one, so that one load gives two
    vectors and one operation each to widen them.
    """

    stored = types.uint32
    bits_per_weight = 16.0

    def pack(self, panels: torch.Tensor) -> Array:
        """See `WeightFormat.pack`; rounds to the nearest."""
        count, depth, _ = panels.shape
        bits = panels.bfloat16().contiguous().view(torch.int16)
        pairs = bits.view(count, depth, 2, LANES).transpose(-1, -2).contiguous()
        array: Array = pairs.view(torch.int32).squeeze(-1).view(torch.uint32).numpy()
        return array

    def read(
        self, builder: Any, line: Any, opened: tuple[Any, ...], k: Any, ahead: Any
    ) -> tuple[Any, Any]:
        """See `VectorFormat.read`."""
        del opened, k
        prefetch(builder, bytes_after(builder, line, ahead))
        pairs = load(builder, line, INTEGERS)
        return widen_low(builder, pairs, VECTOR), widen_high(builder, pairs, VECTOR)


def widen_low(builder: Any, pairs: Any, wide: Any) -> Any:
    """The float32 of the bfloat16 in the low half of each 32-bit integer: its bits on top."""
    shift = ir.Constant(pairs.type, 16 if wide is FLOAT else [16] * LANES)
    return builder.bitcast(builder.shl(pairs, shift), wide)


def widen_high(builder: Any, pairs: Any, wide: Any) -> Any:
    """The float32 of the bfloat16 in the high half, which stands where it must already."""
    mask = ir.Constant(pairs.type, 0xFFFF0000 if wide is FLOAT else [0xFFFF0000] * LANES)
    return builder.bitcast(builder.and_(pairs, mask), wide)
