import mmap
from pathlib import Path

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


def test_a_large_array_has_pages_of_its_own_that_go_with_the_last_view_of_it() -> None:
    array = aligned_zeros((3, 1 << 20), np.float32)
    assert not array.any()
    array[...] = 7
    row = array[2, 5:]
    del array
    again = aligned_zeros((3, 1 << 20), np.float32)
    assert (row == 7).all()
    assert not again.any()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no such file system")
def test_memory_is_taken_where_it_is_written_to_and_given_back() -> None:
    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    before = resident_bytes()
    array = aligned_zeros((1 << 28,), np.uint8)
    assert resident_bytes() - before < 1 << 26
    array[...] = 1
    assert resident_bytes() - before > 1 << 27
    del array
    assert resident_bytes() - before < 1 << 26


def test_a_system_without_huge_pages_has_zeros_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    array = aligned_zeros((3, 1 << 20), np.float32)
    assert array.ctypes.data % 64 == 0
    assert not array.any()
