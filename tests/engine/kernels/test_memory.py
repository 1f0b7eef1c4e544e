import numpy as np
import pytest

from outrider.engine.kernels.memory import aligned_zeros


@pytest.mark.parametrize("dtype", [np.float32, np.uint32])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (700, 129)])
def test_zeros_begin_on_a_cache_line_and_are_one_piece(shape: tuple[int, ...], dtype: type) -> None:
    for _ in range(4):
        array = aligned_zeros(shape, dtype)
        assert array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous
        assert array.shape == shape
        assert array.dtype == np.dtype(dtype)
        assert not array.any()
        array[...] = 1
