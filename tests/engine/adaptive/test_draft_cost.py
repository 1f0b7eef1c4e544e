import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.engine.adaptive.draft_cost import DraftCost


def learned(lengths: list[int], fixed_s: float, token_s: float) -> DraftCost:
    cost = DraftCost()
    for tokens in lengths:
        cost.observe(tokens, fixed_s + token_s * tokens)
    return cost


def test_before_two_lengths_were_seen_each_token_is_thought_to_take_its_share() -> None:
    cost = learned([8] * 50, 0.004, 0.0)
    assert [cost.seconds(k) for k in (1, 4, 8)] == pytest.approx([0.0005, 0.002, 0.004])


@given(st.floats(0, 0.01), st.floats(0, 0.01), st.lists(st.integers(1, 8), min_size=3))
def test_from_two_lengths_on_the_fixed_part_is_told_from_that_of_each_token(
    fixed_s: float, token_s: float, lengths: list[int]
) -> None:
    cost = learned([*lengths, 1, 8, 1, 8, 4], fixed_s, token_s)
    for k in range(1, 9):
        assert cost.seconds(k) == pytest.approx(fixed_s + token_s * k, rel=0.02, abs=2e-5)


def test_a_length_that_is_not_seen_for_long_keeps_what_was_known_of_it() -> None:
    cost = learned([1, 8] * 10 + [8] * 1_000, 0.006, 0.0)
    assert cost.seconds(1) == pytest.approx(0.006, rel=0.01)


def test_a_change_is_followed() -> None:
    cost = learned([1, 8] * 20, 0.001, 0.001)
    for k in [1, 8] * 60:
        cost.observe(k, 0.002 + 0.003 * k)
    assert cost.seconds(4) == pytest.approx(0.014, rel=0.02)


def test_noise_never_makes_a_draft_cost_less_than_nothing() -> None:
    cost = learned([1], 0.0, 0.01)
    cost.observe(8, 0.001)
    assert 0 <= cost.seconds(1) <= cost.seconds(8)
