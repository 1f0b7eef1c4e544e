"""Weights in 8 bits: a whole number from -127 to 127 times a scale.

The values of a GGUF file's Q8_0 are kept as they are.
"""

from typing import Any

import numpy as np
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
from outrider.engine.kernels.vectors import LANES, bytes_after, index, load

_LARGEST = 127
_LINE_BYTES = SCALES_BYTES + GROUP * PANEL
_NUMBERS = ir.VectorType(ir.IntType(8), LANES)


class Int8:
    """A line holds a group: scales, then an int8 for each output of each input."""

    stored = types.int8
    inputs_per_line = GROUP
    bits_per_weight = 8 * _LINE_BYTES / (GROUP * PANEL)

    def pack(self, panels: torch.Tensor) -> Array:
        """See `WeightFormat.pack`; the number nearest to each weight."""
        groups = in_groups(panels)
        scale = (groups.abs().amax(2) / _LARGEST).half()
        steps = (groups / scale.float().unsqueeze(2)).nan_to_num(0.0)
        numbers = steps.round().clamp(-_LARGEST, _LARGEST).to(torch.int8)
        return lines((scale,), numbers).view(np.int8)

    def open_line(self, builder: Any, line: Any, ahead: Any) -> tuple[Any, ...]:
        """See `VectorFormat.open_line`."""
        prefetch_line(builder, line, ahead, _LINE_BYTES)
        return tuple(read_scales(builder, line, 0))

    def read(
        self, builder: Any, line: Any, opened: tuple[Any, ...], k: Any, ahead: Any
    ) -> tuple[Any, Any]:
        """See `VectorFormat.read`."""
        del ahead
        at = builder.add(builder.mul(k, index(PANEL)), index(SCALES_BYTES))
        input_ = bytes_after(builder, line, at)
        first, second = (
            builder.fmul(
                to_float(
                    builder,
                    load(
                        builder,
                        bytes_after(builder, input_, index(part * LANES)),
                        _NUMBERS,
                        align=1,
                    ),
                    signed=True,
                ),
                scale,
            )
            for part, scale in enumerate(opened)
        )
        return first, second
