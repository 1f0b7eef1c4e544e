"""Arrays that begin on a cache line, which a vector as wide as one then never straddles.

Tile registers take five times as long to load where they do. Large arrays lie in huge pages where
the system has them: with two fifths of the weights in pages of 4 KiB a step of one row took 5 %
longer.
"""

import math
import mmap
from contextlib import suppress
from typing import Any

import numpy as np

from outrider.engine.compiling import compiled

_LINE_BYTES = 64
_HUGE_PAGE_BYTES = 1 << 21


def aligned_zeros(
    shape: tuple[int, ...], dtype: np.dtype[Any] | type
) -> np.ndarray[Any, np.dtype[Any]]:
    """Zeros that take memory only where they are written to, a page at a time."""
    wanted = np.dtype(dtype)
    size = math.prod(shape) * wanted.itemsize
    room = size + _LINE_BYTES
    raw = _huge_pages(room) if room > _HUGE_PAGE_BYTES else np.zeros(room, np.uint8)
    start = -raw.ctypes.data % _LINE_BYTES
    array: np.ndarray[Any, np.dtype[Any]] = raw[start : start + size].view(wanted).reshape(shape)
    return array


def _huge_pages(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Memory of this process alone, in huge pages where the system has them.

    NumPy asks for them too, but malloc takes up to 32 MiB from a heap of small pages.
    """
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(size, np.uint8)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # Linux may have been built without them.
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)


@compiled()
def aligned_empty(count: int, dtype: Any) -> Any:
    """Room for `count` numbers, for compiled code."""
    raw = np.empty(count + _LINE_BYTES, dtype)
    start = -raw.ctypes.data % _LINE_BYTES // raw.itemsize
    return raw[start : start + count]
