"""Weights as small whole numbers times a scale, one for every output of a group of inputs.

A line holds a group: its scales in float16, then its numbers, input by input. It is read front to
back, like a panel of the other formats.
"""

from typing import Any

import numpy as np
import torch
from llvmlite import ir

from outrider.engine.kernels.formats.base import PANEL, Array
from outrider.engine.kernels.vectors import (
    INTEGERS,
    LANES,
    VECTOR,
    bytes_after,
    index,
    load,
    prefetch,
)

GROUP = 32
"""Inputs that share a scale, as in a GGUF file's Q8_0 and Q4_1."""

SCALES_BYTES = 2 * PANEL
_CACHE_LINE = 64
_HALVES = ir.VectorType(ir.HalfType(), LANES)


def in_groups(panels: torch.Tensor) -> torch.Tensor:
    """Return `panels` [P, K, PANEL] as [P, ceil(K / GROUP), GROUP, PANEL], filled up with zeros."""
    count, depth, outputs = panels.shape
    missing = -depth % GROUP
    filled = torch.nn.functional.pad(panels, (0, 0, 0, missing))
    return filled.view(count, -1, GROUP, outputs)


def lines(scales: tuple[torch.Tensor, ...], numbers: torch.Tensor) -> Array:
    """Return [P, groups, bytes] of float16 `scales` [P, groups, PANEL] and bytes [P, groups, …]."""
    parts = [
        np.ascontiguousarray(each.numpy()).view(np.uint8).reshape(*each.shape[:2], -1)
        for each in (*scales, numbers)
    ]
    return np.concatenate(parts, axis=-1)


def read_scales(builder: Any, line: Any, at: int) -> list[Any]:
    """Emit the load of PANEL scales, `at` bytes into the line, as two vectors of float32."""
    halves = (
        load(builder, bytes_after(builder, line, index(at + 2 * part * LANES)), _HALVES, align=2)
        for part in range(2)
    )
    return [builder.fpext(half, VECTOR) for half in halves]


def prefetch_line(builder: Any, line: Any, ahead: Any, size: int) -> None:
    """Ask for the `size` bytes that lie `ahead` bytes behind the line."""
    first = bytes_after(builder, line, ahead)
    for at in range(0, size, _CACHE_LINE):
        prefetch(builder, bytes_after(builder, first, index(at)))


def to_float(builder: Any, numbers: Any, *, signed: bool) -> Any:
    """A vector of bytes as float32."""
    wide = (builder.sext if signed else builder.zext)(numbers, INTEGERS)
    return builder.sitofp(wide, VECTOR)
