"""The acceptance histogram: exact figures, and None where there is none."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.acceptance.histogram import AcceptanceHistogram


@st.composite
def verification_steps(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    k = draw(st.integers(1, 8))
    drafted = draw(st.lists(st.integers(1, k), max_size=40))
    return [draw(st.integers(0, d)) for d in drafted], drafted, k


def test_figures_of_a_server_summary_are_exact() -> None:
    histogram = AcceptanceHistogram((39, 1, 0, 3), drafted=129)
    assert (histogram.k, histogram.steps, histogram.accepted) == (3, 43, 10)
    assert histogram.mean_acceptance_length == 1 + Fraction(10, 43)
    assert histogram.draft_acceptance_rate == Fraction(10, 129)
    assert histogram.waste == 119
    assert histogram.immediate_failure_rate == Fraction(39, 43)
    assert histogram.full_draft_rate == Fraction(3, 43)


@pytest.mark.parametrize(
    ("counts", "drafted", "steps", "accepted", "mean_acceptance_length"),
    [
        ((11, 14, 11, 4, 0, 3), 215, 43, 63, Fraction(106, 43)),
        ((8, 0, 6, 6), 60, 20, 30, Fraction(5, 2)),
        ((5, 0, 0, 10), 45, 15, 30, Fraction(3)),
    ],
)
def test_published_histograms_give_their_servers_own_totals(
    counts: tuple[int, ...],
    drafted: int,
    steps: int,
    accepted: int,
    mean_acceptance_length: Fraction,
) -> None:
    histogram = AcceptanceHistogram(counts, drafted)
    assert (histogram.steps, histogram.accepted) == (steps, accepted)
    assert histogram.mean_acceptance_length == mean_acceptance_length


def test_equal_means_hide_opposite_shapes() -> None:
    all_or_nothing = AcceptanceHistogram((50, 0, 0, 0, 50), drafted=400)
    always_two = AcceptanceHistogram((0, 0, 100, 0, 0), drafted=400)
    assert all_or_nothing.mean_acceptance_length == always_two.mean_acceptance_length == 3
    assert all_or_nothing.immediate_failure_rate == all_or_nothing.full_draft_rate == Fraction(1, 2)
    assert always_two.immediate_failure_rate == always_two.full_draft_rate == 0


def test_unknown_drafted_leaves_rate_and_waste_unknown() -> None:
    histogram = AcceptanceHistogram((39, 1, 0, 3), drafted=None)
    assert histogram.draft_acceptance_rate is None
    assert histogram.waste is None
    assert histogram.mean_acceptance_length == Fraction(53, 43)


def test_zero_acceptance_is_zero_and_not_unknown() -> None:
    histogram = AcceptanceHistogram((7, 0, 0), drafted=14)
    assert histogram.draft_acceptance_rate == 0
    assert histogram.mean_acceptance_length == 1
    assert histogram.waste == 14


def test_no_steps_have_zero_waste_and_no_ratio() -> None:
    histogram = AcceptanceHistogram.from_steps([], [], k=3)
    assert histogram == AcceptanceHistogram((0, 0, 0, 0), drafted=0)
    assert histogram.waste == 0
    assert histogram.mean_acceptance_length is None
    assert histogram.draft_acceptance_rate is None
    assert histogram.immediate_failure_rate is None
    assert histogram.full_draft_rate is None


@pytest.mark.parametrize(
    ("counts", "drafted", "message"),
    [
        ((), None, "counts has 0 entries"),
        ((5,), None, "counts has 1 entries"),
        ((5, -1), None, "H_1 is -1"),
        ((5, 1.0), None, r"H_1 is 1\.0"),
        ((True, 1), None, "H_0 is True"),
        ((np.int64(5), 1), None, "H_0 is"),
        ((5, 1), -1, "D is -1"),
        ((5, 1), 6.0, r"D is 6\.0"),
        ((39, 1, 0, 3), 9, "expected A <= D <= K"),
        ((39, 1, 0, 3), 130, "expected A <= D <= K"),
    ],
)
def test_impossible_counts_are_refused_in_one_line(
    counts: tuple[int, ...], drafted: int | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        AcceptanceHistogram(counts, drafted)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("accepted", "drafted", "k", "message"),
    [
        ([0], [1], 0, "K is 0"),
        ([0, 1], [1], 3, "2 accepted lengths for 1 drafted"),
        ([0, 0], [2, 0], 3, "drafted is 0 at step 1"),
        ([0], [4], 3, "drafted is 4 at step 0"),
        ([0, 2], [1, 1], 3, "accepted is 2 at step 1"),
        ([-1], [1], 3, "accepted is -1 at step 0"),
        ([0.0], [1], 3, "accepted holds float64"),
        ([True], [1], 3, "accepted holds bool"),
        ([[0]], [[1]], 3, "accepted has 2 dimensions"),
    ],
)
def test_steps_that_cannot_be_are_refused(
    accepted: Sequence[int], drafted: Sequence[int], k: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        AcceptanceHistogram.from_steps(accepted, drafted, k)


@given(verification_steps())
def test_steps_and_counts_say_the_same(steps: tuple[list[int], list[int], int]) -> None:
    accepted, drafted, k = steps
    histogram = AcceptanceHistogram.from_steps(accepted, drafted, k)
    assert histogram.counts == tuple(accepted.count(j) for j in range(k + 1))
    assert histogram.accepted == sum(accepted)
    assert histogram.drafted == sum(drafted)
    assert histogram == AcceptanceHistogram.from_steps(np.array(accepted, np.int32), drafted, k)


@given(verification_steps())
def test_emitted_tokens_are_steps_plus_accepted(
    steps: tuple[list[int], list[int], int],
) -> None:
    accepted, drafted, k = steps
    histogram = AcceptanceHistogram.from_steps(accepted, drafted, k)
    emitted = sum(a + 1 for a in accepted)
    if histogram.mean_acceptance_length is not None:
        assert histogram.mean_acceptance_length * histogram.steps == emitted
    assert histogram.steps + histogram.accepted == emitted
