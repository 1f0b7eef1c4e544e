import numpy as np
import pytest
from numpy.typing import NDArray

from outrider.engine.drafting.lookup.suffix_forest import SuffixForest


def grown(forest: SuffixForest, tokens: NDArray[np.int32]) -> int:
    """Nodes in use after a tree of one text was planted."""
    forest.extend(forest.open_text(forest.plant()), tokens)
    return forest.live_nodes


@pytest.mark.parametrize("earlier", [10, 3_000])
def test_after_a_reset_a_forest_is_as_large_as_a_new_one_whatever_stood_in_it(earlier: int) -> None:
    source = np.random.default_rng(3)
    forest, fresh = SuffixForest(24), SuffixForest(24)
    grown(forest, np.tile(source.integers(0, 900, earlier), 2).astype(np.int32))
    forest.reset()
    assert forest.live_nodes == 0
    text = source.integers(0, 9, 60).astype(np.int32)
    assert grown(forest, text) == grown(fresh, text)
    assert forest.nbytes == fresh.nbytes
