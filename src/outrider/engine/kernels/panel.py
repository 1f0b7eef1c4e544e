"""Weights packed in panels, which the kernels read front to back.

A weight matrix [N, K] is stored as panels [K, PANEL] of `PANEL` outputs each, so that one pass
over a panel reads memory in order and multiplies it with several rows at once. Whatever format they
have in memory, weights become float32 in registers, and activations and sums are float32; but for
tiles, see `tile_product`.
"""

import torch

from outrider.engine.kernels.formats.base import PANEL, Array, WeightFormat
from outrider.engine.kernels.memory import aligned_zeros

_PACKED_PANELS = 64


def pack(weight: torch.Tensor, weight_format: WeightFormat) -> Array:
    """Pack a weight [N, K] as ceil(N / PANEL) panels, zero-padded: [panels, lines, elements].

    A few at a time, since the whole of a large one would take several times its memory.
    """
    rows = _PACKED_PANELS * PANEL
    first = _lines(weight[:rows], weight_format)
    packed = aligned_zeros((-(-len(weight) // PANEL), *first.shape[1:]), first.dtype)
    packed[: len(first)] = first
    for start in range(rows, len(weight), rows):
        lines = _lines(weight[start : start + rows], weight_format)
        packed[start // PANEL :][: len(lines)] = lines
    return packed


def _lines(weight: torch.Tensor, weight_format: WeightFormat) -> Array:
    """All of the weight at once."""
    padded = torch.zeros(len(weight) + -len(weight) % PANEL, weight.shape[1])
    padded[: len(weight)] = weight
    return weight_format.pack(padded.view(-1, PANEL, weight.shape[1]).transpose(1, 2))
