"""Weights packed in panels, which the kernels read front to back.

A weight matrix [N, K] is stored as panels [K, PANEL] of `PANEL` outputs each, so that one pass
over a panel reads memory in order and multiplies it with several rows at once. Whatever format they
have in memory, weights become float32 in registers, and activations and sums are float32; but for
tiles, see `tile_product`.
"""

import numpy as np
import torch

from outrider.engine.kernels.formats.base import PANEL, Array, WeightFormat

_PACKED_PANELS = 64


def pack(weight: torch.Tensor, weight_format: WeightFormat) -> Array:
    """Pack a weight [N, K] as ceil(N / PANEL) panels, zero-padded: [panels, lines, elements].

    A few at a time, since the whole of a large one would take several times its memory.
    """
    parts = []
    for first in range(0, len(weight), _PACKED_PANELS * PANEL):
        part = weight[first : first + _PACKED_PANELS * PANEL]
        padded = torch.zeros(len(part) + -len(part) % PANEL, weight.shape[1])
        padded[: len(part)] = part
        panels = padded.view(-1, PANEL, weight.shape[1]).transpose(1, 2)
        parts.append(weight_format.pack(panels))
    return np.concatenate(parts) if len(parts) > 1 else parts[0]
