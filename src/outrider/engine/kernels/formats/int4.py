"""Weights in 4 bits: a whole number from 0 to 15 times a scale, above a lowest value.

The values of a GGUF file's Q4_1 are kept as they are.
"""

from typing import Any

import torch
from llvmlite import ir
from numba import types

from outrider.engine.kernels.formats.base import PANEL, Array
from outrider.engine.kernels.formats.groups import (
    GROUP,
    SCALES_BYTES,
    in_groups,
    lines,
    prefetch_line,
    read_scales,
    to_float,
)
from outrider.engine.kernels.vectors import LANES, bytes_after, index, load, multiply_add

_LARGEST = 15
_LINE_BYTES = 2 * SCALES_BYTES + GROUP * LANES
_PAIRS = ir.VectorType(ir.IntType(8), LANES)


class Int4:
    """A line holds a group: scales, lowest values, then for each input LANES pairs in bytes.

    Output j is the low half of byte j, output j + LANES the high one.
    """

    stored = types.uint8
    inputs_per_line = GROUP
    bits_per_weight = 8 * _LINE_BYTES / (GROUP * PANEL)

    def pack(self, panels: torch.Tensor) -> Array:
        """See `WeightFormat.pack`; the number nearest to each weight."""
        groups = in_groups(panels)
        lowest = groups.amin(2)
        scale = ((groups.amax(2) - lowest) / _LARGEST).half()
        lowest = lowest.half()
        above = groups - lowest.float().unsqueeze(2)
        steps = (above / scale.float().unsqueeze(2)).nan_to_num(0.0)
        numbers = steps.round().clamp(0, _LARGEST).to(torch.uint8)
        pairs = numbers[..., :LANES] | numbers[..., LANES:] << 4
        return lines((scale, lowest), pairs)

    def open_line(self, builder: Any, line: Any, ahead: Any) -> tuple[Any, ...]:
        """See `VectorFormat.open_line`."""
        prefetch_line(builder, line, ahead, _LINE_BYTES)
        scales, lowest = (read_scales(builder, line, at) for at in (0, SCALES_BYTES))
        return tuple(zip(scales, lowest, strict=True))

    def read(
        self, builder: Any, line: Any, opened: tuple[Any, ...], k: Any, ahead: Any
    ) -> tuple[Any, Any]:
        """See `VectorFormat.read`."""
        del ahead
        at = builder.add(builder.mul(k, index(LANES)), index(2 * SCALES_BYTES))
        pairs = load(builder, bytes_after(builder, line, at), _PAIRS, align=1)
        half = ir.Constant(_PAIRS, [4] * LANES)
        low = builder.and_(pairs, ir.Constant(_PAIRS, [15] * LANES))
        first, second = (
            multiply_add(builder, to_float(builder, numbers, signed=False), scale, lowest)
            for numbers, (scale, lowest) in zip(
                (low, builder.lshr(pairs, half)), opened, strict=True
            )
        )
        return first, second
