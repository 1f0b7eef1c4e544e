import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.engine.verification.rejection import accepts, residual

P = torch.tensor([[0.5, 0.3, 0.2]])


def accepts_at(q: torch.Tensor | None, token: int, u: float) -> bool:
    return bool(accepts(P, q, torch.tensor([token]), torch.tensor([u], dtype=torch.float64)))


def test_a_point_mass_is_accepted_below_the_targets_probability() -> None:
    assert accepts_at(None, 1, 0.299)
    assert not accepts_at(None, 1, 0.301)


def test_a_drafted_token_is_accepted_below_the_ratio_of_p_to_q() -> None:
    q = torch.tensor([[0.2, 0.6, 0.2]])
    assert accepts_at(q, 1, 0.499)
    assert not accepts_at(q, 1, 0.501)
    assert accepts_at(q, 0, 0.999)


def test_a_token_that_the_target_excludes_is_never_accepted() -> None:
    p = torch.tensor([[1.0, 0.0]])
    u = torch.zeros(1, dtype=torch.float64)
    assert not accepts(p, None, torch.tensor([1]), u)
    assert not accepts(p, torch.tensor([[0.0, 1.0]]), torch.tensor([1]), u)


def test_a_token_that_its_own_q_excludes_is_never_accepted() -> None:
    assert not accepts_at(torch.tensor([[0.5, 0.5, 0.0]]), 2, 0.0)


@pytest.mark.parametrize("q", [None, torch.tensor([[0.2, 0.6, 0.2]])])
def test_a_missing_token_is_never_accepted_and_takes_nothing_from_p(
    q: torch.Tensor | None,
) -> None:
    assert not accepts_at(q, -1, 0.0)
    torch.testing.assert_close(residual(P, q, torch.tensor([-1])), P)


def test_the_residual_of_a_point_mass_is_p_without_the_token() -> None:
    torch.testing.assert_close(
        residual(P, None, torch.tensor([0])), torch.tensor([[0.0, 0.3, 0.2]])
    )


def test_the_residual_is_what_p_has_over_q() -> None:
    q = torch.tensor([[0.2, 0.6, 0.2]])
    torch.testing.assert_close(residual(P, q, torch.tensor([1])), torch.tensor([[0.3, 0.0, 0.0]]))


@pytest.mark.parametrize("q", [None, torch.tensor([[1.0, 0.0]])])
def test_where_rounding_leaves_no_residual_the_token_comes_from_p(q: torch.Tensor | None) -> None:
    p = torch.tensor([[1.0, 0.0]])
    torch.testing.assert_close(residual(p, q, torch.tensor([0])), p)


WEIGHTS = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(lambda w: sum(w) > 0)


GRID = 10_000


@settings(deadline=None)
@given(target=WEIGHTS, proposal=WEIGHTS)
def test_acceptance_and_residual_together_give_exactly_p(
    target: list[int], proposal: list[int]
) -> None:
    """Sum over the drafted tokens, each with the share of an even grid of u that accepts it."""
    p, q = (torch.tensor([weights]).double() / sum(weights) for weights in (target, proposal))
    u = (torch.arange(GRID, dtype=torch.float64) + 0.5) / GRID
    emitted = torch.zeros(4, dtype=torch.float64)
    for token in q[0].nonzero()[:, 0]:
        drafted = token.expand(GRID)
        accept = accepts(p.expand(GRID, -1), q.expand(GRID, -1), drafted, u).double().mean()
        rest = residual(p, q, drafted[:1])[0]
        emitted[token] += q[0, token] * accept
        emitted += q[0, token] * (1 - accept) * rest / rest.sum()
    np.testing.assert_allclose(emitted, p[0], atol=1 / GRID)
