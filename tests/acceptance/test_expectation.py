"""Arithmetic on an expected mean acceptance length, against values worked out by hand."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.acceptance.expectation import (
    ExpectedMean,
    barely_accepts,
    compare,
    counted_differently,
    k_needed,
    last_survival,
    least_k,
    mean_at,
    other_counts,
)
from outrider.acceptance.figures import SegmentFigures, segment_figures
from outrider.acceptance.totals import Totals
from outrider.records.reading import AcceptanceRecord
from outrider.records.tabulate import tabulate
from outrider.records.validation import validated

Histogram = Sequence[int]


def figures(*histograms: Histogram) -> SegmentFigures:
    k = len(histograms[0]) - 1
    records = [
        validated(AcceptanceRecord(engine="vllm", k=k, histogram=h, drafted=k * sum(h)))
        for h in histograms
    ]
    totals = Totals.empty(k).with_rows(tabulate(records, k))
    return segment_figures(totals, rng=np.random.default_rng(0), draws=200)


def without_positions(steps: int, accepted: int, k: int) -> SegmentFigures:
    record = validated(AcceptanceRecord(engine="vllm", k=k, steps=steps, accepted=accepted))
    totals = Totals.empty(k).with_rows(tabulate([record], k))
    return segment_figures(totals, rng=np.random.default_rng(0), draws=10)


def card(value: float, k: int | None = None) -> ExpectedMean:
    return ExpectedMean(value, value - 0.05, value + 0.05, k)


TEN = (4, 3, 2, 1)
"""Ten steps, A = 10: M = 2 with s = .6, .3, .1."""


def test_a_card_of_5_5_cannot_be_reached_below_k_5() -> None:
    assert least_k(5.5) == 5
    assert [least_k(m) for m in (1.0, 4.0, 4.01)] == [0, 3, 4]


def test_a_smaller_k_cuts_the_drafts() -> None:
    at = mean_at(figures(TEN), 2)
    assert at is not None
    assert at.low == at.high == pytest.approx(1.9)


def test_a_larger_k_adds_at_most_the_last_survival_for_each_position() -> None:
    at = mean_at(figures(TEN), 7)
    assert at is not None
    assert [at.low, at.high] == pytest.approx([2.0, 2.0 + 4 * 0.1])


def test_without_positions_the_mean_alone_bounds_both() -> None:
    made = without_positions(10, 10, 3)
    assert made.positions == ()
    assert last_survival(made)[0] == pytest.approx(1 / 3)
    smaller, larger = mean_at(made, 1), mean_at(made, 5)
    assert smaller is not None
    assert larger is not None
    assert [smaller.low, smaller.high] == pytest.approx([1 + 1 / 3, 2])
    assert [larger.low, larger.high] == pytest.approx([2, 2 + 2 / 3])


@given(st.lists(st.integers(0, 30), min_size=3, max_size=9).filter(any), st.data())
def test_the_bounds_hold_whatever_is_known(histogram: list[int], data: st.DataObject) -> None:
    """Steps of a longer run, cut at a K, bound what the longer run gave; and the reverse."""
    longer = len(histogram) - 1
    k = data.draw(st.integers(1, longer))
    cut = [*histogram[:k], sum(histogram[k:])]

    def mean(counts: Histogram) -> float:
        return 1 + sum(j * n for j, n in enumerate(counts)) / sum(counts)

    assert mean(cut) == pytest.approx(
        1 + sum(list(accumulate(reversed(histogram)))[::-1][1 : k + 1]) / sum(histogram)
    )
    for known in (figures(cut), without_positions(sum(cut), round((mean(cut) - 1) * sum(cut)), k)):
        up = mean_at(known, longer)
        assert up is not None
        assert up.low - 1e-9 <= mean(histogram) <= up.high + 1e-9
    accepted = sum(j * n for j, n in enumerate(histogram))
    for whole in (figures(histogram), without_positions(sum(histogram), accepted, longer)):
        down = mean_at(whole, k)
        assert down is not None
        assert down.low - 1e-9 <= mean(cut) <= down.high + 1e-9


def test_the_k_that_could_explain_a_gap_counts_positions() -> None:
    made = figures(TEN)
    assert k_needed(made, 2.4) == 3 + 4
    assert k_needed(made, 2.41) == 3 + 5
    assert k_needed(made, 1.5) == 3
    assert k_needed(figures((4, 6, 0, 0)), 3.0) is None


@pytest.mark.parametrize(
    ("value", "k", "outcome", "tokens"),
    [
        (2.0, 3, "as expected", 0.0),
        (2.04, 3, "as expected", -0.04),
        (2.5, 3, "below", -0.5),
        (1.5, 3, "above", 0.5),
        (2.5, None, "below", -0.5),
        (2.3, 7, "cannot be compared", 0.0),
        (2.6, 7, "below", -0.2),
        (1.5, 7, "above", 0.5),
        (2.5, 2, "below", -0.6),
        (1.9, 2, "as expected", 0.0),
    ],
)
def test_without_an_interval_the_rounding_of_the_card_alone_is_allowed_for(
    value: float, k: int | None, outcome: str, tokens: float
) -> None:
    here = mean_at(figures(TEN), k)
    assert here is not None
    found, difference = compare(here, card(value, k))
    assert found == outcome
    assert difference == pytest.approx(tokens, abs=1e-9)


def test_a_figure_within_the_interval_is_as_expected() -> None:
    made = figures((8, 2), (7, 3), (6, 4), (5, 5), (4, 6))
    interval = made.mean_acceptance_length.interval
    here = mean_at(made, 1)
    assert interval is not None
    assert here is not None
    inside, outside = interval.high - 0.01, interval.high + 0.01
    assert compare(here, ExpectedMean(inside, inside, inside))[0] == "as expected"
    assert compare(here, ExpectedMean(outside, outside, outside))[0] == "below"


def test_a_stored_run_is_cut_to_the_smaller_k_by_its_own_positions() -> None:
    stored = ExpectedMean(2.0, 1.8, 2.2, 3, (0.6, 0.3, 0.1))
    at = stored.at(1)
    assert at.value == pytest.approx(1.6)
    assert at.k == 1
    assert at.high - at.low == pytest.approx(0.4 * 0.6)
    assert stored.at(3) is stored
    assert stored.at(None) is stored
    assert card(5.5, 7).at(3) == card(5.5, 7)


def test_a_twentieth_of_the_expected_is_a_broken_drafter_and_a_third_is_not() -> None:
    assert barely_accepts(figures((98, 2, 0, 0)), 3.3)
    assert not barely_accepts(figures(TEN), 5.5)
    assert not barely_accepts(figures((98, 2, 0, 0)), 1.0)


def test_the_papers_length_follows_from_no_formula_of_its_rate() -> None:
    """Case 18: a rate of 0.65 gives 2.86 or 2.64 by formula; 3.25 are accepted tokens at K = 5."""
    exact = figures((20, 5, 5, 10, 20, 40))
    assert exact.mean_acceptance_length.value == pytest.approx(4.25)
    assert exact.draft_acceptance_rate.value == pytest.approx(0.65)
    counts = {each.name: each for each in other_counts(exact)}
    by_formula = [each.value for each in counts.values() if each.formula and "A/D" in each.name]
    assert by_formula == [pytest.approx(2.857, abs=5e-4), pytest.approx(2.642, abs=5e-4)]
    other = counted_differently(exact, ExpectedMean(3.25, 3.245, 3.255))
    assert other is not None
    assert other.name.startswith("A/S")
    assert other.value == pytest.approx(3.25)


def test_the_mean_by_request_is_recognised() -> None:
    """Fixture 1 of the cases: 2.116 by request and 2.839 by step."""
    made = figures((39, 1, 0, 3), (0, 0, 430, 0))
    other = counted_differently(made, card(2.1))
    assert other is not None
    assert other.name.startswith("M by request")


def test_a_formula_is_told_from_a_measured_figure() -> None:
    made = figures(TEN)
    assert made.draft_acceptance_rate.value == pytest.approx(1 / 3)
    other = counted_differently(made, ExpectedMean(1.5, 1.5, 1.5))
    assert other is not None
    assert other.formula
    assert other.name.startswith("1/(1 − A/D)")


def test_what_agrees_with_m_itself_is_no_other_count() -> None:
    assert counted_differently(figures(TEN), card(2.0)) is None
    assert counted_differently(figures(TEN), card(3.9)) is None
