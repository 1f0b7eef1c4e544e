"""Arrays that begin on a cache line, which a vector as wide as one then never straddles.

Tile registers take five times as long to load where they do.
"""

import math
from typing import Any

import numpy as np

from outrider.engine.compiling import compiled

_LINE_BYTES = 64


def aligned_zeros(
    shape: tuple[int, ...], dtype: np.dtype[Any] | type
) -> np.ndarray[Any, np.dtype[Any]]:
    """Zeros that take memory only where they are written to."""
    wanted = np.dtype(dtype)
    size = math.prod(shape) * wanted.itemsize
    raw = np.zeros(size + _LINE_BYTES, np.uint8)
    start = -raw.ctypes.data % _LINE_BYTES
    array: np.ndarray[Any, np.dtype[Any]] = raw[start : start + size].view(wanted).reshape(shape)
    return array


@compiled()
def aligned_empty(count: int, dtype: Any) -> Any:
    """Room for `count` numbers, for compiled code."""
    raw = np.empty(count + _LINE_BYTES, dtype)
    start = -raw.ctypes.data % _LINE_BYTES // raw.itemsize
    return raw[start : start + count]
