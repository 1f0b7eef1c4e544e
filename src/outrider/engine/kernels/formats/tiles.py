"""bfloat16 weights in tiles, for a CPU with tile registers (Intel AMX)."""

import ctypes
import platform
from functools import cache
from typing import Any

import numpy as np
import torch
from llvmlite import binding
from numba import types

from outrider.engine.compiling import compiled
from outrider.engine.kernels.formats.base import PANEL, Array

DEPTH = 32
"""Inputs of a tile of weights, in pairs."""
TILE_ROWS = 16
"""Rows that a product takes at once."""
PARTS = 2
"""bfloat16 numbers that a float32 is split into. A third would hold all its bits, but then products
and no longer memory are what one row waits for: 18 ms a step where two parts take 15."""
TILE_OUTPUTS = 16

_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18
"""Linux gives a process the tile registers only when it asks for them."""


@cache
def tiles_available() -> bool:
    """Whether this process may use tile registers for bfloat16."""
    features = binding.get_host_cpu_features()
    if not (features.get("amx-bf16") and features.get("amx-tile")):
        return False
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    return bool(ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0)


class BFloat16Tiles:
    """A line holds 32 inputs: two tiles, of 16 outputs each, with the inputs in pairs side by side.

    `tile_product` reads it.
    """

    stored = types.uint16
    bits_per_weight = 16.0

    def pack(self, panels: torch.Tensor) -> Array:
        """See `WeightFormat.pack`; rounds to the nearest."""
        count, depth, _ = panels.shape
        filled = torch.nn.functional.pad(panels, (0, 0, 0, -depth % DEPTH)).bfloat16()
        # Line, pair of inputs, input of the pair, half of the panel, output of the half.
        pairs = filled.view(count, -1, DEPTH // 2, 2, 2, TILE_OUTPUTS)
        tiles = pairs.permute(0, 1, 4, 2, 5, 3).reshape(count, -1, DEPTH * PANEL)
        array: Array = tiles.contiguous().view(torch.int16).numpy().view(np.uint16)
        return array


@compiled()
def place_in_line(output: Any, k: Any) -> Any:
    """Return where in its line the weight of input `k` of the line and `output` of the panel is."""
    row = output // TILE_OUTPUTS * TILE_ROWS + k // 2
    return row * DEPTH + output % TILE_OUTPUTS * 2 + k % 2
