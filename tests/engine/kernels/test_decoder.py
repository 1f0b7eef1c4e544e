from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from outrider.engine.kernels.decoder import (
    SPAN,
    attend,
    embed,
    gated_product,
    normalise,
    rms_norm,
    rotate,
    shift_scores,
)
from outrider.engine.kernels.panel import PANEL, pack

Floats = np.ndarray[Any, np.dtype[np.float32]]


def random(*shape: int, scale: float = 1.0, seed: int = 0) -> Floats:
    return scale * np.random.default_rng(seed).standard_normal(shape, np.float32)


def packed_keys(keys: Floats) -> Floats:
    """Keys [C, D] as the cache holds them, [C / SPAN, D, SPAN]."""
    spans = keys.reshape(-1, SPAN, keys.shape[1])
    return np.ascontiguousarray(spans.transpose(0, 2, 1))


def attention(x: Floats, keys: Floats, values: Floats, length: int) -> Floats:
    out = np.full_like(x, np.nan)
    attend(x, 0, len(x), packed_keys(keys), values, length, out)
    return out


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 63, 64, 65, 128, 190])
@pytest.mark.parametrize(("heads", "size"), [(1, 64), (3, 64), (7, 128)])
def test_attention_is_that_of_torch_over_the_first_tokens(
    heads: int, size: int, length: int
) -> None:
    x, keys, values = random(heads, size), random(192, size, seed=1), random(192, size, seed=2)
    q, k, v = (torch.from_numpy(each).double() for each in (x, keys[:length], values[:length]))
    expected = functional.scaled_dot_product_attention(q, k, v).numpy()
    np.testing.assert_allclose(attention(x, keys, values, length), expected, atol=1e-5)


def test_attention_does_not_see_what_lies_behind_the_length() -> None:
    x, keys, values = random(3, 64), random(128, 64, seed=1), random(128, 64, seed=2)
    clean = attention(x, keys, values, 70)
    keys[70:], values[70:] = 1e30, np.nan
    assert np.array_equal(attention(x, keys, values, 70), clean)


def test_attention_takes_scores_whose_exponential_would_overflow() -> None:
    x, keys, values = random(2, 64, scale=40), random(64, 64, scale=40), random(64, 64, seed=2)
    best = (x @ keys[:50].T).argmax(axis=1)
    np.testing.assert_allclose(attention(x, keys, values, 50), values[best], atol=1e-5)


def test_attention_reads_and_writes_only_its_own_heads() -> None:
    x, keys, values = random(5, 64), random(64, 64, seed=1), random(64, 64, seed=2)
    out = np.full_like(x, -1)
    attend(x, 2, 2, packed_keys(keys), values, 10, out)
    assert (out[[0, 1, 4]] == -1).all()
    assert np.array_equal(out[2:4], attention(x[2:4], keys, values, 10))


def test_scores_are_shifted_and_scaled_to_a_maximum_of_zero_up_to_their_length() -> None:
    scores = np.array([[9.0, 9.0, 9.0, 9.0], [1.0, 3.0, -5.0, 8.0]], np.float32)
    shift_scores(scores, 1, 3, 0.5)
    assert scores.tolist() == [[9.0, 9.0, 9.0, 9.0], [-1.0, 0.0, -4.0, 8.0]]


def test_weights_are_divided_by_their_sum_up_to_their_length() -> None:
    weights = np.array([[1.0, 3.0, 4.0, 7.0]], np.float32)
    normalise(weights, 0, 3)
    assert weights.tolist() == [[0.125, 0.375, 0.5, 7.0]]


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_the_norm_is_that_of_torch_row_by_row(rows: int) -> None:
    x, weight = random(rows, 96, scale=3), random(96, seed=1)
    out = np.empty_like(x)
    epsilon: Any = np.float32(1e-3)
    rms_norm(x, weight, epsilon, out)
    expected = functional.rms_norm(torch.from_numpy(x), (96,), torch.from_numpy(weight), 1e-3)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_rotation_turns_each_pair_of_a_head_by_its_angle() -> None:
    heads = random(3, 8)
    angles = np.array([0.3, -1.2, 2.5, 0.0], np.float32)
    # A pair is a complex number, its rotation a product with e^(i angle).
    pairs = (heads[:, :4] + 1j * heads[:, 4:]) * np.exp(1j * angles)
    rotate(heads, np.cos(angles), np.sin(angles))
    np.testing.assert_allclose(heads, np.hstack([pairs.real, pairs.imag]), atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_an_embedding_is_read_out_of_the_packed_table(dtype: torch.dtype) -> None:
    table = torch.from_numpy(random(3 * PANEL + 4, 10))
    token_ids = np.array([0, PANEL - 1, PANEL, 3 * PANEL + 3])
    out = np.empty((4, 10), np.float32)
    embed(token_ids, pack(table, dtype), out)
    assert np.array_equal(out, table[token_ids].to(dtype).float().numpy())


def test_the_gated_product_is_that_of_torch_and_stays_within_its_columns() -> None:
    # 7 of the second panel's columns exist; large inputs take the exponential to both its ends.
    columns = PANEL + 7
    gate, up = (torch.from_numpy(random(2 * PANEL, 20, seed=i)) for i in (1, 2))
    x = random(6, 20, scale=30)
    out, scratch = np.full((6, columns), np.nan, np.float32), np.empty((6, 3 * PANEL), np.float32)
    for p in range(2):
        panels = pack(gate, torch.float32)[p], pack(up, torch.float32)[p]
        gated_product(*panels, x, scratch, out, p * PANEL)
    inputs = torch.from_numpy(x)
    expected = functional.silu(inputs @ gate.T) * (inputs @ up.T)
    np.testing.assert_allclose(out, expected[:, :columns], rtol=1e-4, atol=1e-3)
