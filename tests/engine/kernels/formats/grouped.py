"""What the lines of int8 and int4 hold, value by value, read as their layout is documented."""

import struct
from typing import Any

import numpy as np
import torch

from outrider.engine.kernels.formats.registry import FORMATS
from outrider.engine.kernels.panel import pack

Array = np.ndarray[Any, np.dtype[Any]]


def _half(line: bytes, output: int, *, second: bool = False) -> float:
    at = 2 * output + 64 * second
    return float(struct.unpack("<e", line[at : at + 2])[0])


def _int8(line: bytes, k: int, output: int) -> float:
    """64 bytes of scales (fp16), then 32 signed bytes for each input."""
    number = struct.unpack("b", line[64 + 32 * k + output : 65 + 32 * k + output])[0]
    return float(number * _half(line, output))


def _int4(line: bytes, k: int, output: int) -> float:
    """Scales and lowest values (fp16, 64 bytes each), then 16 bytes for each input."""
    byte = line[128 + 16 * k + output % 16]
    number = byte & 15 if output < 16 else byte >> 4
    return number * _half(line, output) + _half(line, output, second=True)


def kept(weight: torch.Tensor, name: str) -> torch.Tensor:
    """The float64 values [N, K] that are left of a weight [N, K] once it is packed."""
    packed = pack(weight, FORMATS[name])
    value = {"int8": _int8, "int4": _int4}[name]
    outputs, depth = weight.shape
    return torch.tensor(
        [
            [
                value(packed[output // 32, k // 32].tobytes(), k % 32, output % 32)
                for k in range(depth)
            ]
            for output in range(outputs)
        ],
        dtype=torch.float64,
    )
