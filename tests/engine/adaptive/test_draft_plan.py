from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.engine.adaptive.estimates import as_they_say, log_odds_of

from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.draft_plan import best_plan

LINE = CostCurve.of({1: 1.0, 2: 1.1})
"""A row more takes a tenth of a step."""
K = 3


def plan(
    confidence: list[list[float]],
    drafted: list[int],
    *,
    rate: float = 1.0,
    token_s: float = 0.1,
    cost: CostCurve = LINE,
    most: list[int] | None = None,
) -> list[int]:
    c = np.array(confidence)
    found: list[int] = best_plan(
        log_odds_of(c),
        np.array(drafted),
        np.full(len(c), c.shape[1]) if most is None else np.array(most),
        as_they_say(c.shape[1]),
        plain_rows=len(c),
        rate=rate,
        token_s=token_s,
        cost=cost,
    ).tolist()
    return found


def gain(
    survival: NDArray[np.float64],
    lengths: tuple[int, ...],
    made: int,
    step: tuple[float, float, CostCurve],
) -> float:
    """What `lengths` give, written out: tokens, less those that the time for them would give."""
    rate, token_s, cost = step
    tokens = sum(survival[b, :length].sum() for b, length in enumerate(lengths))
    passes = max(0, max(lengths) - made)
    return float(tokens - rate * (passes * token_s + cost.step_s(len(lengths) + sum(lengths))))


chances = st.lists(st.floats(0, 1), min_size=K, max_size=K)


@settings(deadline=None)  # the first example compiles
@given(
    confidence=st.lists(chances, min_size=1, max_size=3),
    made=st.integers(1, K),
    rate=st.floats(0.1, 3.0),
    token_s=st.floats(0.0, 1.0),
    rises=st.lists(st.floats(0.0, 0.5), min_size=12, max_size=12),
)
def test_no_other_plan_gains_more(
    confidence: list[list[float]], made: int, rate: float, token_s: float, rises: list[float]
) -> None:
    cost = CostCurve.of({n + 1: 1.0 + sum(rises[:n]) for n in range(12)})
    survival = np.array(confidence).cumprod(axis=1)
    step = (rate, token_s, cost)
    found = plan(confidence, [made] * len(survival), rate=rate, token_s=token_s, cost=cost)
    best = max(
        gain(survival, each, made, step) for each in product(range(K + 1), repeat=len(survival))
    )
    assert gain(survival, tuple(found), made, step) == pytest.approx(best, abs=1e-9)


def test_a_draft_goes_on_while_it_is_surely_accepted_so_far() -> None:
    # 0.9, 0.81, 0.73 tokens for 0.2 s each, against 1 token a second.
    assert plan([[0.9, 0.9, 0.9]], [1]) == [3]
    assert plan([[0.15, 0.15, 0.15]], [1]) == [1]  # a row is a tenth, a pass another


def test_the_dearer_a_pass_and_the_higher_the_rate_the_shorter_the_draft() -> None:
    sure = [[0.9, 0.6, 0.6]]
    assert plan(sure, [1]) == [3]
    assert plan(sure, [1], token_s=0.35) == [2]
    assert plan(sure, [1], token_s=0.6) == [1]
    assert plan(sure, [1], rate=4.0) == [1]


def test_a_pass_is_shared_by_those_for_whom_it_pays() -> None:
    # 0.4 of a token each, for 0.5 s together and 0.1 s each.
    assert plan([[0.4, 1.0]], [1], token_s=0.5) == [1]
    assert plan([[0.4, 1.0]] * 3, [1] * 3, token_s=0.5) == [2, 2, 2]
    assert plan([[0.4, 1.0], [0.02, 1.0], [0.4, 1.0]], [1] * 3, token_s=0.5) == [2, 0, 2]


def test_a_pass_that_pays_only_with_the_next_one_is_made() -> None:
    # Beyond the second row one takes no more time.
    cost = CostCurve.of({1: 1.0, 2: 1.0, 3: 1.5, 4: 1.5, 5: 1.5})
    assert plan([[0.8, 0.8]], [1], token_s=0.2, cost=cost) == [1]
    assert plan([[0.8, 0.8, 0.8]], [1], token_s=0.2, cost=cost) == [3]


def test_no_draft_becomes_longer_than_it_may() -> None:
    assert plan([[0.9, 0.9, 0.9]] * 2, [1, 1], most=[2, 1]) == [2, 1]


def test_what_is_no_number_promises_nothing() -> None:
    assert plan([[0.9, float("nan"), 0.9]], [1]) == [1]
