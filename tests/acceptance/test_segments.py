"""Pooling: same K only, and what is unknown in a part is unknown in the sum."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.acceptance.histogram import AcceptanceHistogram
from outrider.acceptance.segments import IncompatibleSegments, pool


@st.composite
def histograms_of_k_3(draw: st.DrawFn) -> AcceptanceHistogram:
    counts = tuple(draw(st.lists(st.integers(0, 100), min_size=4, max_size=4)))
    accepted = AcceptanceHistogram(counts, drafted=None).accepted
    drafted = draw(st.none() | st.integers(accepted, 3 * sum(counts)))
    return AcceptanceHistogram(counts, drafted)


def test_pooling_weights_by_steps_where_averaging_weights_by_requests() -> None:
    short = AcceptanceHistogram((39, 1, 0, 3), drafted=129)
    long = AcceptanceHistogram((0, 0, 430, 0), drafted=1290)
    pooled = pool([short, long]).mean_acceptance_length
    assert short.mean_acceptance_length is not None
    assert long.mean_acceptance_length == 3
    assert pooled is not None
    assert float(pooled) == pytest.approx(2.839, abs=5e-4)
    by_request = (short.mean_acceptance_length + long.mean_acceptance_length) / 2
    assert float(by_request) == pytest.approx(2.116, abs=5e-4)


def test_histograms_of_different_k_are_never_added() -> None:
    one = AcceptanceHistogram((4386, 22021), drafted=26407)
    eight = AcceptanceHistogram((2632, 1611, 1140, 975, 665, 603, 411, 394, 2612), drafted=88344)
    assert one.mean_acceptance_length == 1 + Fraction(22021, 26407)
    assert eight.mean_acceptance_length == 1 + Fraction(38611, 11043)
    with pytest.raises(IncompatibleSegments, match=r"K = 1, 8 cannot be pooled.* by itself"):
        pool([eight, one, one])


def test_unknown_drafted_in_one_part_is_unknown_in_the_pool() -> None:
    known = AcceptanceHistogram((1, 1), drafted=2)
    unknown = AcceptanceHistogram((1, 1), drafted=None)
    assert pool([known, unknown]) == AcceptanceHistogram((2, 2), drafted=None)
    assert pool([known, known]) == AcceptanceHistogram((2, 2), drafted=4)


def test_nothing_to_pool_is_refused() -> None:
    with pytest.raises(ValueError, match="no histogram to pool"):
        pool([])


@given(histograms_of_k_3(), histograms_of_k_3(), histograms_of_k_3())
def test_pooling_is_associative_and_blind_to_order(
    a: AcceptanceHistogram, b: AcceptanceHistogram, c: AcceptanceHistogram
) -> None:
    assert pool([pool([a, b]), c]) == pool([a, pool([b, c])]) == pool([c, a, b])
    assert pool([a]) == a


@given(st.lists(histograms_of_k_3(), min_size=1, max_size=5))
def test_pooled_totals_are_sums(parts: list[AcceptanceHistogram]) -> None:
    pooled = pool(parts)
    assert pooled.steps == sum(part.steps for part in parts)
    assert pooled.accepted == sum(part.accepted for part in parts)
