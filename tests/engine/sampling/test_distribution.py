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
    greedy_choices,
    greedy_tokens,
    probabilities,
    target_distribution,
    unusable_rows,
)


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
    p = probabilities(torch.tensor([logits]), [temperature])
    np.testing.assert_allclose(p[0].numpy(), softmax(np.array(logits) / temperature), atol=1e-4)


def test_each_row_has_its_own_temperature() -> None:
    logits = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    p = probabilities(logits, [1.0, 0.5])
    np.testing.assert_allclose(p[:, 1], [1 / (1 + math.exp(-1)), 1 / (1 + math.exp(-2))], rtol=1e-6)


def test_probabilities_of_bfloat16_logits_are_float32() -> None:
    assert probabilities(torch.zeros(1, 3, dtype=torch.bfloat16), [1.0]).dtype == torch.float32


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


def test_the_temperature_comes_before_the_truncations() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0, -6.0]])
    cold, hot = target_distribution(
        logits.expand(2, -1), [SamplingParameters(each, 0, top_p=0.85) for each in (1.0, 2.0)]
    )
    # 0.66 + 0.24 reach 0.85 at temperature 1; 0.50 + 0.30 do not at 2.
    np.testing.assert_allclose(cold, [*softmax([2.0, 1.0]), 0, 0], atol=1e-6)
    np.testing.assert_allclose(hot, [*softmax([1.0, 0.5, 0.0]), 0], atol=1e-6)


def test_each_truncation_sees_what_the_one_before_it_left() -> None:
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    p = target_distribution(logits, [SamplingParameters(1.0, 0, min_p=0.3, top_k=2, top_p=0.57)])
    # Of three tokens by min-p two by top-k, of which the first alone has 4/7 of the rest.
    np.testing.assert_allclose(p[0], [1, 0, 0, 0], atol=1e-6)


def test_a_greedy_row_is_certain_of_its_first_largest_token() -> None:
    logits = torch.tensor([[1.0, 3.0, 3.0], [1.0, 3.0, 3.0]])
    p = target_distribution(logits, [SamplingParameters(), SamplingParameters(1.0, 0, top_k=1)])
    assert p.tolist() == [[0, 1, 0], [0, 0.5, 0.5]]


SETTINGS = [
    SamplingParameters(),
    SamplingParameters(0.7, 0),
    SamplingParameters(1.5, 0, top_k=40),
    SamplingParameters(1.0, 0, top_p=0.9),
    SamplingParameters(0.8, 0, min_p=0.05, top_k=20, top_p=0.95),
    SamplingParameters(5.0, 0, top_p=0.999),
    SamplingParameters(1.0, 0, min_p=0.01),
]


def test_a_row_is_the_same_bits_alone_and_among_others() -> None:
    logits = torch.randn(len(SETTINGS) * 3, 40_000, generator=torch.Generator().manual_seed(1)) * 3
    before = logits.clone()
    parameters = SETTINGS * 3
    together = target_distribution(logits, parameters)
    for row, each, p in zip(logits, parameters, together, strict=True):
        assert torch.equal(target_distribution(row.unsqueeze(0), [each])[0], p)
    assert torch.equal(logits, before)
    assert together.sum(dim=-1) == pytest.approx(np.ones(len(parameters)), abs=1e-5)


def test_rows_without_any_choice_or_without_numbers_are_found() -> None:
    rows = [[0.0, -math.inf], [-math.inf, -math.inf], [0.0, math.nan], [math.inf, 0.0]]
    for dtype in (torch.float32, torch.float64):
        logits = torch.tensor(rows, dtype=dtype)
        assert unusable_rows(logits).tolist() == [False, True, True, True]
        assert unusable_rows(logits, greedy_choices(logits)).tolist() == [False, True, True, True]


def test_a_broken_row_does_not_look_sound_after_truncation() -> None:
    logits = torch.tensor([[0.0, math.nan, 1.0, 2.0]])
    for each in SETTINGS[1:]:
        assert target_distribution(logits, [each]).isnan().any()


def spelled_out(logits: list[float], asked: SamplingParameters) -> list[float]:
    """The definition, token by token, in double precision."""
    weights = [math.exp(logit / asked.temperature) for logit in logits]
    likeliest = max(weights)
    weights = [each if each >= asked.min_p * likeliest else 0 for each in weights]
    if asked.top_k > 0:
        last = sorted(weights, reverse=True)[min(asked.top_k, len(weights)) - 1]
        weights = [each if each >= last else 0 for each in weights]
    total = sum(weights)
    # A token goes when the likelier ones have enough without it.
    kept = [
        each if sum(other for other in weights if other > each) / total < asked.top_p else 0
        for each in weights
    ]
    return [each / sum(kept) for each in kept]


@given(
    # Irregular numbers, so that none of the thresholds falls on a rounding error; ties happen.
    logits=st.lists(st.integers(-5, 5).map(lambda each: each * 0.7313), min_size=1, max_size=6),
    temperature=st.sampled_from([0.41, 1.0, 2.3]),
    min_p=st.sampled_from([0.0, 0.0371, 0.413]),
    top_k=st.integers(-1, 7),
    top_p=st.sampled_from([0.1037, 0.5019, 0.9041, 1.0]),
)
def test_every_combination_on_a_tiny_vocabulary_is_as_defined(
    logits: list[float], temperature: float, min_p: float, top_k: int, top_p: float
) -> None:
    asked = SamplingParameters(temperature, 0, min_p=min_p, top_k=top_k, top_p=top_p)
    p = target_distribution(torch.tensor([logits]), [asked])
    np.testing.assert_allclose(p[0].numpy(), spelled_out(logits, asked), atol=1e-5)
