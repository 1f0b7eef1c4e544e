"""Weights in the type that they are computed in."""

from typing import Any

import torch
from numba import types

from outrider.engine.kernels.formats.base import Array, OneInputLines
from outrider.engine.kernels.vectors import LANES, bytes_after, index, load, prefetch


class Float32(OneInputLines):
    """A line holds one input."""

    stored = types.float32
    bits_per_weight = 32.0

    def pack(self, panels: torch.Tensor) -> Array:
        """See `WeightFormat.pack`."""
        array: Array = panels.contiguous().numpy()
        return array

    def read(
        self, builder: Any, line: Any, opened: tuple[Any, ...], k: Any, ahead: Any
    ) -> tuple[Any, Any]:
        """See `VectorFormat.read`."""
        del opened, k
        second = builder.gep(line, [index(LANES)])
        for address in (line, second):
            prefetch(builder, bytes_after(builder, address, ahead))
        return load(builder, line), load(builder, second)
