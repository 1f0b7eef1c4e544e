"""From tokens per decode step and step inflation to speed-up."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.acceptance.speed import coverage, speed_up, step_inflation, tokens_per_decode_step

positive = st.floats(1e-3, 1e3)


@pytest.mark.parametrize(
    ("tokens_per_s", "m_hat", "expected_rho"), [(175.49, 1.89, 1.385), (165.65, 2.08, 1.615)]
)
def test_published_speeds_imply_their_step_inflation(
    tokens_per_s: float, m_hat: float, expected_rho: float
) -> None:
    plain_step_s = 1 / 128.64
    rho = step_inflation(m_hat / tokens_per_s, plain_step_s)
    assert rho == pytest.approx(expected_rho, abs=5e-4)
    assert speed_up(m_hat, rho) == pytest.approx(tokens_per_s / 128.64)


def test_many_accepted_tokens_cannot_pay_for_dearer_steps() -> None:
    assert speed_up(2.46, 3.6) == pytest.approx(0.683, abs=5e-4)


@given(positive)
def test_break_even_is_where_inflation_equals_tokens_per_step(rho: float) -> None:
    assert speed_up(rho, rho) == 1


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6), positive, positive)
def test_speed_up_is_the_ratio_of_times_per_token(
    arm_tokens: int, arm_steps: int, plain_tokens: int, arm_s: float, plain_s: float
) -> None:
    # Plain decoding emits one token a step.
    rho = step_inflation(arm_s / arm_steps, plain_s / plain_tokens)
    faster = (plain_s / plain_tokens) / (arm_s / arm_tokens)
    assert speed_up(tokens_per_decode_step(arm_tokens, arm_steps), rho) == pytest.approx(faster)


def test_steps_without_a_draft_count_in_tokens_per_decode_step_and_coverage() -> None:
    # 43 verification steps accepted 63; 57 more steps had no draft.
    assert tokens_per_decode_step(43 + 63 + 57, 100) == Fraction(163, 100)
    assert coverage(43, 100) == Fraction(43, 100)
    assert coverage(0, 100) == 0


def test_figures_without_a_denominator_are_none() -> None:
    assert tokens_per_decode_step(0, 0) is None
    assert coverage(0, 0) is None
    assert step_inflation(0.01, 0.0) is None
    assert step_inflation(None, 0.01) is None
    assert step_inflation(0.01, None) is None
    assert speed_up(2.0, 0.0) is None
    assert speed_up(None, 1.0) is None
    assert speed_up(2.0, None) is None


@pytest.mark.parametrize("verification_steps", [-1, 11])
def test_coverage_beyond_all_steps_is_refused(verification_steps: int) -> None:
    with pytest.raises(ValueError, match="among 10 decode steps"):
        coverage(verification_steps, 10)
