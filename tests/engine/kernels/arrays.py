"""Random arrays for the kernels."""

from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float32]]


def random(*shape: int, scale: float = 1.0, seed: int = 0) -> Floats:
    """Normal numbers with standard deviation `scale`, the same ones for the same arguments."""
    return scale * np.random.default_rng(seed).standard_normal(shape, np.float32)
