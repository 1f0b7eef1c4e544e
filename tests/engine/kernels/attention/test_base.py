from outrider.engine.kernels.arguments import SPAN
from outrider.engine.kernels.attention.base import scratch_numbers
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
