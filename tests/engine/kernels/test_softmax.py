from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.kernels.arrays import random

from outrider.engine.kernels.softmax import softmax
from outrider.engine.kernels.vectors import LANES

RANGES = [(0, 1), (0, 32), (3, 29), (17, 18), (31, 32), (0, 16), (15, 17)]
FACTOR: Any = np.float32(0.4)


@pytest.mark.parametrize(("start", "end"), RANGES)
def test_it_is_that_of_torch_within_its_range_and_leaves_the_other_rows(
    start: int, end: int
) -> None:
    scores = random(3, 32, scale=9)
    kept = scores.copy()
    softmax(scores, 1, start, end, FACTOR)
    right = torch.softmax(torch.from_numpy(kept[1, start:end]).double() * 0.4, 0)
    np.testing.assert_allclose(scores[1, start:end], right, atol=1e-6)
    assert np.array_equal(scores[[0, 2]], kept[[0, 2]])


@pytest.mark.parametrize(("start", "end"), RANGES)
@pytest.mark.parametrize("other", [np.nan, np.inf, -np.inf, 3e38])
def test_what_lies_outside_the_range_changes_no_bit(start: int, end: int, other: float) -> None:
    scores = random(1, 32, scale=9)
    beside = np.full((1, 32), other, np.float32)
    beside[0, start:end] = scores[0, start:end]
    for each in (scores, beside):
        softmax(each, 0, start, end, FACTOR)
    assert np.array_equal(scores[0, start:end], beside[0, start:end])


def test_it_is_bit_for_bit_the_same_whole_vectors_further_on() -> None:
    scores = random(1, 2 * LANES, scale=9)
    moved = np.zeros((1, 6 * LANES), np.float32)
    moved[0, 3 * LANES : 5 * LANES] = scores
    softmax(scores, 0, 5, 30, FACTOR)
    softmax(moved, 0, 3 * LANES + 5, 3 * LANES + 30, FACTOR)
    assert np.array_equal(scores[0, 5:30], moved[0, 3 * LANES + 5 : 3 * LANES + 30])


def test_scores_far_apart_neither_overflow_nor_leave_the_greatest_alone() -> None:
    scores = np.array([[3e38, -3e38, 3e38, *[-3e38] * 13]], np.float32)
    softmax(scores, 0, 0, 3, FACTOR)
    assert scores[0, :3].tolist() == [0.5, 0.0, 0.5]
