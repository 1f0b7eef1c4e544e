import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from scipy.stats import chisquare

from outrider.engine.sampling import (
    Sampling,
    SamplingParameters,
    draw,
    greedy_tokens,
    probabilities,
)
from outrider.errors import InvalidSetting


@pytest.mark.parametrize("temperature", [-0.5, 1e-9, math.inf, math.nan])
def test_a_temperature_outside_its_range_is_refused(temperature: float) -> None:
    with pytest.raises(InvalidSetting, match="temperature"):
        SamplingParameters(temperature)


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_outside_its_range_is_refused(seed: int) -> None:
    with pytest.raises(InvalidSetting, match="seed"):
        SamplingParameters(1.0, seed)


def test_only_temperature_zero_is_greedy() -> None:
    assert SamplingParameters().greedy
    assert not SamplingParameters(0.001).greedy


def test_the_seed_alone_decides_the_randomness() -> None:
    first, again, other = (
        Sampling.seeded(SamplingParameters(1.0, seed)).uniforms(4) for seed in (7, 7, 8)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_greedy_token_is_the_first_of_the_largest(dtype: torch.dtype) -> None:
    logits = torch.zeros(3, 1000, dtype=dtype)
    logits[0, [70, 700]] = 2.0
    logits[1, 999] = 1.0
    assert greedy_tokens(logits).tolist() == [70, 999, 0]


@given(
    logits=st.lists(st.floats(-30, 30, width=32), min_size=2, max_size=6),
    temperature=st.floats(0.05, 5),
)
def test_probabilities_are_the_softmax_at_the_temperature(
    logits: list[float], temperature: float
) -> None:
    p = probabilities(torch.tensor([logits]), temperature)
    np.testing.assert_allclose(p[0].numpy(), softmax(np.array(logits) / temperature), atol=1e-4)


def test_each_row_has_its_own_temperature() -> None:
    logits = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    p = probabilities(logits, torch.tensor([1.0, 0.5]))
    np.testing.assert_allclose(p[:, 1], [1 / (1 + math.exp(-1)), 1 / (1 + math.exp(-2))], rtol=1e-6)


def test_probabilities_of_bfloat16_logits_are_float32() -> None:
    assert probabilities(torch.zeros(1, 3, dtype=torch.bfloat16), 1.0).dtype == torch.float32


@pytest.mark.parametrize(
    ("u", "token"), [(0.0, 1), (0.249, 1), (0.25, 3), (0.999, 3), (1 - 2**-53, 3)]
)
def test_a_token_is_drawn_from_the_interval_that_holds_u(u: float, token: int) -> None:
    weights = torch.tensor([[0.0, 2.0, 0.0, 6.0, 0.0]])
    assert draw(weights, torch.tensor([u], dtype=torch.float64)).tolist() == [token]


def test_drawn_tokens_follow_the_weights() -> None:
    weights = torch.tensor([3.0, 0.0, 5.0, 2.0])
    uniforms = Sampling.seeded(SamplingParameters(1.0, 3)).uniforms(20_000)
    counts = np.bincount(draw(weights.expand(20_000, -1), uniforms), minlength=4)
    assert counts[1] == 0
    assert chisquare(counts[[0, 2, 3]], np.array([0.3, 0.5, 0.2]) * 20_000).pvalue > 1e-3
