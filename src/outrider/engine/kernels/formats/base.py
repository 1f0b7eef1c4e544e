"""What a format of weights is."""

from typing import Any, Protocol

import numpy as np
import torch
from numba import types

from outrider.engine.kernels.vectors import LANES

Array = np.ndarray[Any, np.dtype[Any]]

PANEL = 2 * LANES
"""Outputs in one panel."""


class WeightFormat(Protocol):
    """How panels [K, PANEL] of weights lie in memory: as lines, of a few inputs each.

    Compiled code knows the format of an array by the type of its elements alone.
    """

    stored: types.Number
    bits_per_weight: float

    def pack(self, panels: torch.Tensor) -> Array:
        """Return float32 `panels` [P, K, PANEL] as an array [P, lines, elements]."""
        ...


class VectorFormat(WeightFormat, Protocol):
    """A format that `multiply_block` reads, as vectors of float32."""

    inputs_per_line: int

    def open_line(self, builder: Any, line: Any, ahead: Any) -> tuple[Any, ...]:
        """Emit what the inputs of a line share, for `read`; `line` is the address of the line.

        Memory `ahead` bytes behind what is read is asked for here or in `read`.
        """
        ...

    def read(
        self, builder: Any, line: Any, opened: tuple[Any, ...], k: Any, ahead: Any
    ) -> tuple[Any, Any]:
        """Emit the load of the panel's two vectors of float32 for input `k` of the line."""
        ...


class OneInputLines:
    """What formats have in common whose lines hold one input, and nothing beside it."""

    inputs_per_line = 1

    def open_line(self, builder: Any, line: Any, ahead: Any) -> tuple[Any, ...]:
        """See `VectorFormat.open_line`."""
        del builder, line, ahead
        return ()
