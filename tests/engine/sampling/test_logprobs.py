import numpy as np
import pytest
import torch
from scipy.special import log_softmax

from outrider.engine.sampling.logprobs import WHOLE_VOCABULARY, token_logprobs

LOGITS = torch.randn(5, 50, generator=torch.Generator().manual_seed(2)) * 4
CHOSEN = [0, 49, 7, 7, 20]


def test_the_values_are_the_logarithms_of_the_softmax() -> None:
    expected = log_softmax(LOGITS.double().numpy(), axis=1)
    found = token_logprobs(LOGITS, CHOSEN, 3)
    np.testing.assert_allclose(found.chosen, expected[range(5), CHOSEN], atol=1e-5)
    np.testing.assert_allclose(found.top, -np.sort(-expected, axis=1)[:, :3], atol=1e-5)
    np.testing.assert_array_equal(found.top_ids, np.argsort(-expected, axis=1)[:, :3])


def test_a_rank_counts_the_tokens_at_least_as_likely() -> None:
    order = np.argsort(-LOGITS.numpy(), axis=1)
    expected = [order[i].tolist().index(token) + 1 for i, token in enumerate(CHOSEN)]
    assert token_logprobs(LOGITS, CHOSEN, 0).ranks.tolist() == expected
    assert token_logprobs(torch.zeros(1, 4), [2], 0).ranks.tolist() == [4]


@pytest.mark.parametrize(("asked", "given"), [(0, 0), (4, 4), (99, 50), (WHOLE_VOCABULARY, 50)])
def test_as_many_top_tokens_are_given_as_there_are(asked: int, given: int) -> None:
    found = token_logprobs(LOGITS, CHOSEN, asked)
    assert found.top_ids.shape == found.top.shape == (5, given)


def test_ties_among_the_likeliest_are_in_the_order_of_their_ids() -> None:
    found = token_logprobs(torch.tensor([[0.0, 2.0, 1.0, 2.0, 1.0]]), [1], 5)
    assert found.top_ids.tolist() == [[1, 3, 2, 4, 0]]


def test_a_row_is_the_same_bits_alone_and_among_others() -> None:
    logits = torch.randn(9, 40_000, generator=torch.Generator().manual_seed(3))
    together = token_logprobs(logits, range(9), 2)
    for i in range(9):
        alone = token_logprobs(logits[i : i + 1], [i], 2)
        assert alone.chosen[0] == together.chosen[i]
        assert (alone.top[0] == together.top[i]).all()
