"""Survival by position: the naive tail ratio, and the product-limit estimate under censoring."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import CensoredData, ecdf

from outrider.acceptance.histogram import AcceptanceHistogram
from outrider.acceptance.survival import (
    PositionSurvival,
    conditional_survival,
    product_limit_survival,
    survival,
)

ZERO, ONE = Fraction(0), Fraction(1)

histograms = st.lists(st.integers(0, 500), min_size=2, max_size=10).map(
    lambda counts: AcceptanceHistogram(tuple(counts), drafted=None)
)


@st.composite
def verification_steps(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    k = draw(st.integers(1, 6))
    drafted = draw(st.lists(st.integers(1, k), min_size=1, max_size=40))
    return [draw(st.integers(0, d)) for d in drafted], drafted, k


def test_survival_of_a_server_summary_is_exact() -> None:
    histogram = AcceptanceHistogram((39, 1, 0, 3), drafted=129)
    assert survival(histogram) == (Fraction(4, 43), Fraction(3, 43), Fraction(3, 43))
    assert conditional_survival(histogram) == (Fraction(4, 43), Fraction(3, 4), ONE)


@pytest.mark.parametrize(
    ("counts", "unconditional", "conditional"),
    [
        ((11, 14, 11, 4, 0, 3), (0.744, 0.419, 0.163, 0.070, 0.070), {4: 0.429, 5: 1.0}),
        ((8, 0, 6, 6), (0.6, 0.6, 0.3), {1: 0.6, 2: 1.0, 3: 0.5}),
        ((5, 0, 0, 10), (0.667, 0.667, 0.667), {2: 1.0, 3: 1.0}),
    ],
)
def test_published_histograms_give_their_known_survival(
    counts: tuple[int, ...], unconditional: tuple[float, ...], conditional: dict[int, float]
) -> None:
    histogram = AcceptanceHistogram(counts, drafted=None)
    values = survival(histogram)
    assert values is not None
    assert tuple(map(float, values)) == pytest.approx(unconditional, abs=5e-4)
    given_before = conditional_survival(histogram)
    for position, expected in conditional.items():
        value = given_before[position - 1]
        assert value is not None
        assert float(value) == pytest.approx(expected, abs=5e-4)


def test_published_positions_of_k_8_give_their_conditional_survival() -> None:
    # The counts behind the published shares, rounded so that 38611 were accepted.
    reached = (8411, 6800, 5660, 4685, 4020, 3417, 3006, 2612)
    counts = (11043 - reached[0], *(n - m for n, m in pairwise(reached)), reached[-1])
    histogram = AcceptanceHistogram(counts, drafted=88344)
    assert (histogram.steps, histogram.accepted, histogram.waste) == (11043, 38611, 49733)
    assert [round(float(s), 4) for s in survival(histogram) or ()] == [
        0.7617, 0.6158, 0.5125, 0.4243, 0.3640, 0.3094, 0.2722, 0.2365
    ]  # fmt: skip
    assert [round(float(c or 0), 3) for c in conditional_survival(histogram)] == pytest.approx(
        [0.762, 0.808, 0.832, 0.828, 0.858, 0.850, 0.880, 0.869], abs=1.01e-3
    )


def test_equal_means_survive_differently() -> None:
    all_or_nothing = AcceptanceHistogram((50, 0, 0, 0, 50), drafted=None)
    always_two = AcceptanceHistogram((0, 0, 100, 0, 0), drafted=None)
    assert survival(all_or_nothing) == (Fraction(1, 2),) * 4
    assert survival(always_two) == (ONE, ONE, ZERO, ZERO)
    assert conditional_survival(all_or_nothing) == (Fraction(1, 2), ONE, ONE, ONE)
    assert conditional_survival(always_two) == (ONE, ONE, ZERO, None)


def test_without_steps_survival_is_unknown_not_zero() -> None:
    histogram = AcceptanceHistogram((0, 0, 0), drafted=0)
    assert survival(histogram) is None
    assert conditional_survival(histogram) == (None, None)
    assert product_limit_survival([], [], k=2) == (
        PositionSurvival(1, at_risk=0, accepted=0, conditional=None, survival=None),
        PositionSurvival(2, at_risk=0, accepted=0, conditional=None, survival=None),
    )


@given(histograms)
def test_survival_never_rises_and_adds_up_to_accepted_per_step(
    histogram: AcceptanceHistogram,
) -> None:
    values = survival(histogram)
    if values is None:
        assert histogram.steps == 0
        return
    assert list(values) == sorted(values, reverse=True)
    assert sum(values) == Fraction(histogram.accepted, histogram.steps)
    assert values[-1] == histogram.full_draft_rate


def test_short_drafts_are_censored_not_failed() -> None:
    # By hand: position 1 is offered to all 6 and passed by 5. Position 2 is offered to 3 of those
    # 5 (two drafts ended at 1) and passed by 2. Position 3 is offered to 1 of those 2, and passed.
    accepted = [0, 1, 1, 1, 2, 3]
    drafted = [3, 1, 1, 3, 2, 3]
    assert product_limit_survival(accepted, drafted, k=4) == (
        PositionSurvival(1, 6, 5, conditional=Fraction(5, 6), survival=Fraction(5, 6)),
        PositionSurvival(2, 3, 2, conditional=Fraction(2, 3), survival=Fraction(5, 9)),
        PositionSurvival(3, 1, 1, conditional=Fraction(1), survival=Fraction(5, 9)),
        PositionSurvival(4, 0, 0, conditional=None, survival=None),
    )
    naive = survival(AcceptanceHistogram.from_steps(accepted, drafted, k=4))
    assert naive == (Fraction(5, 6), Fraction(1, 3), Fraction(1, 6), ZERO)


def test_positions_after_a_certain_rejection_survive_with_zero() -> None:
    first, second = product_limit_survival([0, 0], [2, 1], k=2)
    assert (first.conditional, first.survival) == (ZERO, ZERO)
    assert (second.conditional, second.survival) == (None, ZERO)


def test_product_limit_refuses_steps_without_a_draft() -> None:
    with pytest.raises(ValueError, match="drafted is 0 at step 1"):
        product_limit_survival([1, 0], [1, 0], k=2)


@given(verification_steps())
def test_product_limit_matches_scipy_on_censored_data(
    steps: tuple[list[int], list[int], int],
) -> None:
    # A rejection is an event at the rejected position; a draft accepted whole is censored at its
    # last position, which it was at risk in and passed.
    accepted, drafted, k = steps
    rejected_at = [a + 1 for a, d in zip(accepted, drafted, strict=True) if a < d]
    censored_at = [a for a, d in zip(accepted, drafted, strict=True) if a == d]
    reference = ecdf(CensoredData(uncensored=rejected_at, right=censored_at)).sf
    for item in product_limit_survival(accepted, drafted, k):
        if item.at_risk:
            assert item.survival is not None
            assert float(item.survival) == pytest.approx(
                float(reference.evaluate(item.position)), abs=1e-12
            )
        else:
            assert item.conditional is None


@given(verification_steps())
def test_product_limit_never_rises_nor_falls_below_the_naive_ratio(
    steps: tuple[list[int], list[int], int],
) -> None:
    accepted, drafted, k = steps
    naive = survival(AcceptanceHistogram.from_steps(accepted, drafted, k))
    assert naive is not None
    known = [p.survival for p in product_limit_survival(accepted, drafted, k)]
    values = [s for s in known if s is not None]
    assert values == sorted(values, reverse=True)
    assert known[len(values) :] == [None] * (k - len(values))
    assert all(s >= tail for s, tail in zip(values, naive, strict=False))


@given(verification_steps())
def test_product_limit_equals_the_naive_ratio_when_every_draft_is_full(
    steps: tuple[list[int], list[int], int],
) -> None:
    accepted, _, k = steps
    histogram = AcceptanceHistogram.from_steps(accepted, [k] * len(accepted), k)
    positions = product_limit_survival(accepted, [k] * len(accepted), k)
    assert tuple(p.survival for p in positions) == survival(histogram)
    assert tuple(p.conditional for p in positions) == conditional_survival(histogram)
