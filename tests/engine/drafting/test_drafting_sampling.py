import numpy as np
import pytest
import torch
from tests.engine.verification.toys import DRAWS, p_value, samplings

from outrider.engine.drafting.sampling import draft_tokens, top_log_odds
from outrider.engine.sampling import Sampling, SamplingParameters

LOGITS = torch.tensor([2.0, 1.5, 1.0, 0.5])


def one(temperature: float, seed: int = 0) -> Sampling:
    return Sampling.seeded(SamplingParameters(temperature, seed))


def test_greedy_drafts_are_the_argmax_with_certainty_at_any_temperature() -> None:
    drafted = draft_tokens(LOGITS.expand(2, -1), [one(0.0), one(1.0)], "greedy")
    assert drafted.tokens.tolist() == [0, 0]
    assert drafted.q is None


def test_a_greedy_request_has_a_certain_draft_whatever_the_method() -> None:
    drafted = draft_tokens(LOGITS.expand(1, -1), [one(0.0)], "probabilistic")
    assert drafted.tokens.tolist() == [0]
    assert drafted.q is None


def test_tokens_are_drawn_from_q_and_q_is_the_softmax_at_the_temperature() -> None:
    parameters = SamplingParameters(0.7, seed=3, top_k=1)
    drafted = draft_tokens(LOGITS.expand(DRAWS, -1), samplings(parameters, DRAWS), "probabilistic")
    assert drafted.q is not None
    expected = (LOGITS.double() / 0.7).softmax(-1)
    torch.testing.assert_close(drafted.q[0].double(), expected, atol=1e-6, rtol=0)
    counts = np.bincount(drafted.tokens.numpy(), minlength=4)
    assert p_value(counts, expected.numpy()) > 1e-3


def test_in_a_mixed_batch_a_greedy_request_has_a_one_hot_q_and_draws_nothing() -> None:
    batch = [one(1.0, 1), one(0.0, 2), one(0.5, 3)]
    drafted = draft_tokens(LOGITS.expand(3, -1), batch, "probabilistic")
    assert drafted.q is not None
    assert drafted.tokens[1] == 0
    assert drafted.q[1].tolist() == [1, 0, 0, 0]
    torch.testing.assert_close(drafted.q[2], (LOGITS / 0.5).softmax(-1))
    assert batch[1].uniforms(1) == one(0.0, 2).uniforms(1)


def test_a_request_draws_one_number_and_the_same_token_alone_and_in_a_batch() -> None:
    logits = torch.randn(3, 9, generator=torch.Generator().manual_seed(1))
    together = draft_tokens(logits, [one(1.0, s) for s in (1, 2, 3)], "probabilistic")
    for row, seed in enumerate((1, 2, 3)):
        sampling = one(1.0, seed)
        alone = draft_tokens(logits[row : row + 1], [sampling], "probabilistic")
        assert alone.tokens[0] == together.tokens[row]
        reference = one(1.0, seed)
        reference.uniforms(1)
        assert sampling.uniforms(1) == reference.uniforms(1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_log_odds_are_those_of_the_likeliest_token_after_temperature(dtype: torch.dtype) -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0], [2.0, 1.0, 0.0], [3.0, 3.0, 3.0]], dtype=dtype)
    q = (logits / torch.tensor([[1.0], [0.5], [1.0]])).softmax(-1).max(-1).values.double().numpy()
    found = top_log_odds(logits, logits.argmax(-1).numpy(), [one(0.0), one(0.5), one(1.0)])
    np.testing.assert_allclose(found, np.log(q / (1 - q)), rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_log_odds_stay_within_forty_and_nan_stays_one(dtype: torch.dtype) -> None:
    inf = float("inf")
    logits = torch.tensor([[500.0, 0.0], [0.0, -inf], [float("nan"), 0.0]], dtype=dtype)
    found = top_log_odds(logits, logits.argmax(-1).numpy(), [one(1.0)] * 3)
    assert found[:2].tolist() == [40, 40]
    assert np.isnan(found[2])
