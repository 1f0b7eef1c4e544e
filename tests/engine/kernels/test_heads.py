from typing import Any

import numpy as np
import torch
from tests.engine.kernels.arrays import random
from torch.nn import functional

from outrider.engine.kernels.heads import prepare_heads, rotate

KV_HEADS, QUERIES, SIZE = 2, 4, 8
EPSILON: Any = np.float32(1e-3)
NONE = np.zeros(0, np.float32)
ANGLES = np.array([0.3, -1.2, 2.5, 0.0], np.float32)
TURN = (np.cos(ANGLES), np.sin(ANGLES))


def turned(heads: Any) -> Any:
    """A pair is a complex number, its rotation a product with e^(i angle)."""
    pairs = (heads[:, :4] + 1j * heads[:, 4:]) * np.exp(1j * ANGLES)
    return np.hstack([pairs.real, pairs.imag])


def test_rotation_turns_each_pair_of_a_head_by_its_angle() -> None:
    heads = random(3, SIZE)
    expected = turned(heads)
    rotate(heads, *TURN)
    np.testing.assert_allclose(heads, expected, atol=1e-6)


def test_a_family_without_bias_and_norms_only_turns_queries_and_keys() -> None:
    heads = random(QUERIES + 2 * KV_HEADS, SIZE)
    expected = heads.copy()
    expected[:6] = turned(heads[:6])
    prepare_heads(heads, KV_HEADS, (NONE, NONE, NONE), EPSILON, TURN)
    np.testing.assert_allclose(heads, expected, atol=1e-6)


def test_the_bias_comes_first_and_the_norms_before_the_turn() -> None:
    heads, bias = random(QUERIES + 2 * KV_HEADS, SIZE), random(64, seed=1)
    norms = random(2, SIZE, seed=2)
    biased = heads + bias.reshape(8, SIZE)
    query, key = (
        functional.rms_norm(torch.from_numpy(x), (SIZE,), torch.from_numpy(norm), 1e-3).numpy()
        for x, norm in zip((biased[:4], biased[4:6]), norms, strict=True)
    )
    prepare_heads(heads, KV_HEADS, (bias, *norms), EPSILON, TURN)
    expected = np.vstack([turned(query), turned(key), biased[6:]])
    np.testing.assert_allclose(heads, expected, atol=1e-5)
