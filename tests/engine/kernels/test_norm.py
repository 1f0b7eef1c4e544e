from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.kernels.arrays import random
from torch.nn import functional

from outrider.engine.kernels.norm import add_norm, rms_norm

EPSILON: Any = np.float32(1e-3)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_the_norm_is_that_of_torch_row_by_row(rows: int) -> None:
    x, weight = random(rows, 96, scale=3), random(96, seed=1)
    out = np.empty_like(x)
    rms_norm(x, weight, EPSILON, out)
    expected = functional.rms_norm(torch.from_numpy(x), (96,), torch.from_numpy(weight), 1e-3)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_a_norm_in_place_is_bit_for_bit_the_same() -> None:
    x, weight = random(4, 96), random(96, seed=1)
    out = np.empty_like(x)
    rms_norm(x, weight, EPSILON, out)
    rms_norm(x, weight, EPSILON, x)
    assert np.array_equal(x, out)


def test_a_norm_is_added_without_what_pads_its_input() -> None:
    x, weight = random(70), random(70, seed=1)
    branch = np.append(random(70, scale=5, seed=2), np.full(26, np.nan, np.float32))
    normed = functional.rms_norm(
        torch.from_numpy(branch[:70]), (70,), torch.from_numpy(weight), 1e-3
    )
    expected = x + normed.numpy()
    add_norm(branch, weight, EPSILON, x)
    np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-6)
