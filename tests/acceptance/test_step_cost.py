"""Step costs as typed, as measured, and as fitted to throughput."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.acceptance.step_cost import (
    fit_step_cost,
    parse_step_cost,
    step_cost_from_rows,
    step_cost_ratios,
)

MEASURED = [(0, 128.64, 1.0), (2, 175.49, 1.89), (4, 165.65, 2.08)]


@pytest.mark.parametrize(
    ("text", "relative", "costs"),
    [
        ("1,0.115", True, {0: 1.0, 1: 1.115, 4: 1.46}),
        (" 12.5ms , 1.4 ms", False, {0: 12.5, 2: 15.3}),
        ("1,0", True, {0: 1.0, 9: 1.0}),
        ("0:12.5ms,1:13.0ms,2:14.1ms", False, {0: 12.5, 1: 13.0, 2: 14.1, 3: None}),
        ("0:1, 2:1.1", True, {0: 1.0, 1: None, 2: 1.1}),
    ],
)
def test_a_typed_cost_says_what_it_says_and_no_more(
    text: str, relative: bool, costs: dict[int, float | None]
) -> None:
    cost = parse_step_cost(text)
    assert cost.relative == relative
    for k, expected in costs.items():
        assert cost.cost(k) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "1 numbers"),
        ("1", "1 numbers"),
        ("1,2,3", "3 numbers"),
        ("one,0.1", "'one'"),
        ("1,nan", "'nan'"),
        ("inf,1", "'inf'"),
        ("12.5ms,1.4", "mixes ms and plain"),
        ("0:1ms,1:1.1", "mixes ms and plain"),
        ("0,1", "base 0"),
        ("1,-0.1", "-0.1 per token"),
        ("0:1,1", "'1'"),
        ("x:1", "'x:1'"),
        ("-1:1", "'-1:1'"),
        ("0:1,0:2", "K = 0 has two costs"),
        ("0:0", "costs 0"),
    ],
)
def test_a_mistake_is_answered_with_what_was_seen_and_expected(text: str, part: str) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        parse_step_cost(text)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(alphabet="0123456789.:,ms-+eE xn", max_size=20))
def test_any_text_is_a_cost_or_a_value_error(text: str) -> None:
    with suppress(ValueError):
        cost = parse_step_cost(text)
        assert all(value is None or value > 0 for value in map(cost.cost, range(20)))


def test_an_empty_table_is_no_cost() -> None:
    with pytest.raises(ValueError, match="empty"):
        step_cost_from_rows([], relative=True)


def test_throughput_gives_the_published_cost_ratios_and_the_smaller_k() -> None:
    ratios = step_cost_ratios(MEASURED)
    assert ratios[2] == pytest.approx(1.385, abs=5e-4)
    assert ratios[4] == pytest.approx(1.615, abs=5e-4)
    cost = fit_step_cost(MEASURED)
    assert cost.line is not None
    assert cost.line[1] == pytest.approx(0.115, abs=5e-4)
    assert cost.cost(0) == 1
    assert cost.cost(3) == pytest.approx(1.5, abs=5e-4)
    speeds = {k: length / (cost.cost(k) or 0) for k, _, length in MEASURED}
    assert max(speeds, key=speeds.__getitem__) == 2


@given(
    st.floats(1, 2),
    st.floats(0.01, 1),
    st.lists(st.integers(1, 16), min_size=2, max_size=6, unique=True),
)
def test_a_straight_cost_is_found_again(base: float, slope: float, ks: list[int]) -> None:
    lengths = {k: 1 + np.sqrt(k) / 2 for k in ks}
    rows = [(0, 100.0, 1.0)] + [(k, 100 * lengths[k] / (base + slope * k), lengths[k]) for k in ks]
    assert fit_step_cost(rows).line == pytest.approx((base, slope), rel=1e-6)


def test_a_single_k_is_kept_as_measured_without_a_line() -> None:
    cost = fit_step_cost(MEASURED[:2])
    assert cost.line is None
    assert cost.cost(1) is None
    assert cost.cost(2) == pytest.approx(1.385, abs=5e-4)


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        (MEASURED[1:], "no row of K = 0"),
        ([*MEASURED, (2, 100.0, 1.5)], "same K"),
        ([(0, 100.0, 1.0), (2, 0.0, 1.5)], "K = 2 has 0 tokens/s"),
        ([(0, 100.0, 1.0), (2, 90.0, 3.5)], "M = 3.5"),
    ],
)
def test_rows_that_no_run_gives_are_refused(
    rows: list[tuple[int, float, float]], part: str
) -> None:
    with pytest.raises(ValueError, match=part):
        fit_step_cost(rows)


def test_a_cost_is_told_in_words() -> None:
    assert parse_step_cost("12.5ms,1.4ms").text == "12.5 + 1.4 per token, in ms"
    assert parse_step_cost("0:1,2:1.1").text == "K = 0: 1, K = 2: 1.1, in plain steps"
    assert fit_step_cost(MEASURED).text == (
        "K = 0: 1, K = 2: 1.385, K = 4: 1.615, other K: 1.156 + 0.1149 per token, in plain steps"
    )
