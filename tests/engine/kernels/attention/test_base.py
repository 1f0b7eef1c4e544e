import numpy as np

from outrider.engine.kernels.arguments import SPAN
from outrider.engine.kernels.attention.base import most_scratch, scratch_numbers
from outrider.engine.kernels.formats.base import PANEL


def test_scratch_suffices_wherever_in_a_block_a_window_begins() -> None:
    for size in (10, 64, 128):
        width = size + -size % PANEL
        for position in range(3 * SPAN):
            for window in (0, 1, 64, 65, 130):
                start = max(position + 1 - window, 0) if window else 0
                blocks = position // SPAN - start // SPAN + 1
                # Scores and in tiles the parts of weights; results, queries and their parts.
                needed = 2 * blocks * SPAN + 3 * width
                assert 3 * needed <= scratch_numbers(3, position + 1 - start, size)


def test_the_largest_chunk_decides_how_much_scratch_there_is() -> None:
    # One row far on needs more than two near the beginning, four there more than it.
    positions = np.array([400, 5, 6, 300, 301, 302, 303])
    for chunks, (rows, tokens) in (
        ([0, 1, 3], (1, 401)),
        ([0, 1, 3, 7], (4, 304)),
    ):
        found = most_scratch(np.array(chunks), positions, 3, 64)
        assert found == scratch_numbers(3 * rows, tokens, 64)
