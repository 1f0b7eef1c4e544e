from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.kernels.arrays import random

from outrider.engine.kernels.softmax import exponentials
from outrider.engine.kernels.vectors import LANES

RANGES = [(0, 1), (0, 32), (3, 29), (17, 18), (31, 32), (0, 16), (15, 17)]
FACTOR: Any = np.float32(0.4)


@pytest.mark.parametrize(("start", "end"), RANGES)
def test_it_is_that_of_torch_within_its_range_and_leaves_the_other_rows(
    start: int, end: int
) -> None:
    scores = random(3, 32, scale=9)
    kept = scores.copy()
    total = exponentials(scores, 1, start, end, FACTOR)
    right = torch.softmax(torch.from_numpy(kept[1, start:end]).double() * 0.4, 0)
    np.testing.assert_allclose(scores[1, start:end] / total, right, atol=1e-6)
    assert np.array_equal(scores[[0, 2]], kept[[0, 2]])
    first, last = start // LANES * LANES, -(-end // LANES) * LANES
    assert not scores[1, first:start].any()
    assert not scores[1, end:last].any()


@pytest.mark.parametrize(("start", "end"), RANGES)
@pytest.mark.parametrize("other", [np.nan, np.inf, -np.inf, 3e38])
def test_what_lies_outside_the_range_changes_no_bit(start: int, end: int, other: float) -> None:
    scores = random(1, 32, scale=9)
    beside = np.full((1, 32), other, np.float32)
    beside[0, start:end] = scores[0, start:end]
    for each in (scores, beside):
        exponentials(each, 0, start, end, FACTOR)
    assert np.array_equal(scores[0, start:end], beside[0, start:end])


def test_it_is_bit_for_bit_the_same_whole_vectors_further_on() -> None:
    scores = random(1, 2 * LANES, scale=9)
    moved = np.zeros((1, 6 * LANES), np.float32)
    moved[0, 3 * LANES : 5 * LANES] = scores
    total = exponentials(scores, 0, 5, 30, FACTOR)
    assert exponentials(moved, 0, 3 * LANES + 5, 3 * LANES + 30, FACTOR) == total
    assert np.array_equal(scores[0, 5:30], moved[0, 3 * LANES + 5 : 3 * LANES + 30])


def test_scores_far_apart_neither_overflow_nor_leave_the_greatest_alone() -> None:
    scores = np.array([[3e38, -3e38, 3e38, *[-3e38] * 13]], np.float32)
    assert exponentials(scores, 0, 0, 3, FACTOR) == 2
    assert scores[0, :3].tolist() == [1, 0, 1]


def test_a_score_that_is_no_number_leaves_no_weight_that_is_one() -> None:
    for scores in (random(1, 32), np.full((1, 32), np.nan, np.float32)):
        scores[0, 20] = np.nan
        assert np.isnan(exponentials(scores, 0, 3, 29, FACTOR))
    scores = random(1, 32)
    scores[0, 20] = np.inf
    assert np.isnan(exponentials(scores, 0, 3, 29, FACTOR))
