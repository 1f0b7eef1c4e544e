import math
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import MinPLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from outrider.engine.sampling import truncation
from outrider.engine.sampling.truncation import keep_min_p, keep_top_k, keep_top_p

IDS = torch.zeros(1, 1, dtype=torch.int64)
Keep = Callable[[torch.Tensor, Sequence[float]], torch.Tensor]


def rows(seed: int, count: int = 6, vocabulary: int = 3_000) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, vocabulary, generator=generator) * 3


@pytest.mark.parametrize(
    ("keep", "oracle", "settings"),
    [
        (keep_min_p, MinPLogitsWarper, (0.001, 0.05, 0.3, 0.9, 1.0, 0.2)),
        (keep_top_k, TopKLogitsWarper, (1, 2, 50, 2_999, 3_000, 9_999)),
        (keep_top_p, TopPLogitsWarper, (0.01, 0.5, 0.9, 0.99, 0.999, 0.3)),
    ],
)
def test_what_is_kept_is_what_transformers_keeps(
    keep: Keep, oracle: Callable[..., Callable[..., torch.Tensor]], settings: Sequence[float]
) -> None:
    logits = rows(3)
    kept = keep(logits, settings)
    for row, setting, result in zip(logits, settings, kept, strict=True):
        assert torch.equal(result, oracle(setting)(IDS, row.unsqueeze(0))[0])


@given(
    weights=st.lists(st.integers(1, 6), min_size=1, max_size=12),
    top_p=st.floats(0.01, 0.99),
    first_look=st.integers(1, 3),
)
def test_top_p_keeps_the_fewest_that_reach_it_and_their_ties(
    weights: list[int], top_p: float, first_look: int
) -> None:
    ordered = sorted(weights, reverse=True)
    total = sum(weights)
    reached = [sum(ordered[: i + 1]) / total for i in range(len(ordered))]
    if any(abs(each - top_p) < 1e-5 for each in reached):
        return
    least = next(weight for weight, sum_ in zip(ordered, reached, strict=True) if sum_ > top_p)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(truncation, "FIRST_LOOK_TOKENS", first_look)
        kept = keep_top_p(torch.tensor([weights]).float().log(), [top_p])
    assert (kept[0] > -math.inf).tolist() == [weight >= least for weight in weights]


def test_tokens_tied_with_the_last_of_the_top_k_are_kept() -> None:
    kept = keep_top_k(torch.tensor([[2.0, 1.0, 1.0, 0.0]]), [2])
    assert kept.tolist() == [[2.0, 1.0, 1.0, -math.inf]]


def test_the_likeliest_token_is_kept_however_little_is_asked_for() -> None:
    logits = rows(5, count=1)
    best = logits.argmax()
    for kept in (keep_top_p(logits, [1e-9]), keep_top_k(logits, [1]), keep_min_p(logits, [1.0])):
        assert (kept[0] > -math.inf).nonzero().tolist() == [[best]]


def test_what_is_forbidden_already_stays_forbidden() -> None:
    logits = torch.tensor([[0.0, -math.inf, 0.0, -math.inf]])
    for kept in (keep_top_p(logits, [0.99]), keep_top_k(logits, [3]), keep_min_p(logits, [0.1])):
        assert torch.equal(kept, logits)
