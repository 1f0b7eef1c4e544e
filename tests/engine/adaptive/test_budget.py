from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.adaptive.estimates import as_they_say, log_odds_of

from outrider.engine.adaptive.budget import Budget, best_budget
from outrider.engine.adaptive.cost_curve import CostCurve

FLAT = CostCurve.of({1: 1.0, 100: 1.0})
STEEP = CostCurve.of({1: 1.0, 100: 100.0})


def budget(
    confidence: list[list[float]],
    cost: CostCurve,
    spent_s: float = 0.0,
    *,
    in_order: bool = False,
    drafted: list[int] | None = None,
) -> Budget:
    c = np.array(confidence)
    return best_budget(
        log_odds_of(c),
        np.full(len(c), c.shape[1]) if drafted is None else np.array(drafted),
        as_they_say(c.shape[1]),
        plain_rows=len(c),
        sampling=len(c),
        spent_s=spent_s,
        cost=cost,
        in_order=in_order,
    )


def chosen(
    confidence: list[list[float]], cost: CostCurve, spent_s: float = 0.0, *, in_order: bool = False
) -> list[int]:
    found: list[int] = budget(confidence, cost, spent_s, in_order=in_order).lengths.tolist()
    return found


def test_what_a_position_promises_is_the_product_of_the_confidences_up_to_it() -> None:
    found = budget([[0.5, 0.5, 1.0]], FLAT)
    np.testing.assert_allclose(found.promised, [0.5, 0.25, 0.25])
    assert found.verified.tolist() == [1, 1, 1]


def test_beyond_a_draft_there_is_nothing_to_verify() -> None:
    found = budget([[0.9, 0.9, 0.9], [0.5, 0.5, 0.5]], FLAT, drafted=[1, 2])
    assert found.lengths.tolist() == [1, 2]
    np.testing.assert_allclose(found.promised, [0.9 + 0.5, 0.25, 0.0])
    assert found.verified.tolist() == [2, 1, 0]


def test_what_is_not_verified_is_not_added_up() -> None:
    cost = CostCurve.of({1: 1.0, 2: 1.1, 6: 1.5})
    found = budget([[0.95, 0.95], [0.02, 0.9]], cost)
    assert found.verified.tolist() == [1, 1]
    np.testing.assert_allclose(found.promised, [0.95, 0.95**2])


def test_confidence_that_is_no_number_promises_nothing_nor_does_what_follows() -> None:
    assert chosen([[0.9, float("nan"), 0.9], [float("nan")] * 3], FLAT) == [1, 0]


def test_what_is_certain_or_impossible_is_promised_as_such() -> None:
    np.testing.assert_allclose(budget([[1.0, 0.0]], FLAT).promised, [1.0, 0.0])


def test_beyond_the_curve_rows_cost_as_its_last_ones() -> None:
    # 1.6 tokens in 1.5 s, then 2.08 in 2 s.
    assert chosen([[0.6, 0.8]], CostCurve.of({1: 1.0, 2: 1.5})) == [1]


def test_where_rows_cost_nothing_everything_is_verified() -> None:
    assert chosen([[0.1, 0.1], [0.9, 0.9]], FLAT) == [2, 2]


def test_where_each_row_costs_a_step_nothing_is_verified() -> None:
    assert chosen([[0.9, 0.9], [0.9, 0.9]], STEEP) == [0, 0]


def test_the_promising_request_gets_the_rows() -> None:
    cost = CostCurve.of({1: 1.0, 2: 1.1, 6: 1.5})
    assert chosen([[0.95, 0.95], [0.02, 0.9]], cost) == [2, 0]


def test_of_equal_rates_the_smaller_budget_is_taken() -> None:
    # One row for one token more at the same rate: 1 / 1 = 2 / 2.
    assert chosen([[1.0]], CostCurve.of({1: 1.0, 2: 2.0})) == [0]


def test_time_already_spent_makes_longer_drafts_worth_while() -> None:
    cost = CostCurve.of({1: 1.0, 5: 3.0})
    assert chosen([[0.45, 0.9]], cost) == [0]
    assert chosen([[0.45, 0.9]], cost, spent_s=1.0) == [2]


def test_in_order_a_token_is_not_verified_for_what_may_follow_it() -> None:
    # The second row costs much and the third nothing more.
    cost = CostCurve.of({1: 1.0, 2: 2.0, 3: 2.0})
    assert chosen([[0.9, 1.0]], cost) == [2]
    assert chosen([[0.9, 1.0]], cost, in_order=True) == [0]


@settings(deadline=None)  # the first example compiles
@given(
    first=st.floats(0, 1),
    later=st.lists(st.floats(0, 1), min_size=2, max_size=2),
    others=st.lists(st.floats(0, 1), min_size=3, max_size=3),
    steps=st.lists(st.floats(0.0, 1.0), min_size=8, max_size=8),
)
def test_in_order_whether_a_token_is_verified_does_not_depend_on_those_after_it(
    first: float, later: list[float], others: list[float], steps: list[float]
) -> None:
    cost = CostCurve.of({n + 1: 1.0 + sum(steps[:n]) for n in range(8)})
    lengths = [
        chosen([[first, *rest], others], cost, in_order=True)[0] for rest in (later, [1.0, 1.0])
    ]
    assert (lengths[0] > 0) == (lengths[1] > 0)


@settings(deadline=None)  # the first example compiles
@given(
    confidence=st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=3),
    steps=st.lists(st.floats(0.0, 1.0), min_size=12, max_size=12),
    spent_s=st.floats(0, 2),
)
def test_no_choice_of_prefixes_gives_a_higher_rate(
    confidence: list[list[float]], steps: list[float], spent_s: float
) -> None:
    cost = CostCurve.of({n + 1: 1.0 + sum(steps[:n]) for n in range(12)})
    c = np.array(confidence)
    batch = len(c)
    s = c.cumprod(axis=1)

    def rate(lengths: tuple[int, ...]) -> float:
        tokens = batch + sum(float(s[b, :n].sum()) for b, n in enumerate(lengths))
        seconds = spent_s + float(cost.cost_s(np.array([batch + sum(lengths)]))[0])
        return tokens / seconds

    found = chosen(confidence, cost, spent_s)
    best = max(rate(lengths) for lengths in product(range(4), repeat=batch))
    assert rate(tuple(found)) == pytest.approx(best)
