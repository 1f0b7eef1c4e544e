import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.adapters.printed_steps import printed_steps
from outrider.records.reading import Basis

FIFTEEN = ["0.600", "0.385", "0.215", "0.108", "0.062", *10 * ["0.000"]]


@pytest.mark.parametrize(
    ("mean", "accepted", "drafted", "rates", "expected"),
    [
        ("2.92", 167, 259, ["0.805", "0.632", "0.483"], (87, "counted")),
        ("2.37", 89, 975, FIFTEEN, (65, "counted")),
        ("1.00", 0, 30, ["0.000", "0.000", "0.000"], (10, "counted")),
        ("1.00", 0, 7, ["0.000", "0.000"], (6, "estimated")),
        ("0.10", 64, 130, ["0.600"], (None, "estimated")),
        ("2.00", 10, 5, ["0.600"], (None, "estimated")),
        ("1.00", 0, 10, ["nan"], (None, "estimated")),
    ],
)
def test_the_steps_of_a_line(
    mean: str, accepted: int, drafted: int, rates: list[str], expected: tuple[int | None, Basis]
) -> None:
    assert printed_steps(mean, accepted, drafted, rates) == expected


@given(
    st.decimals(0, 999, places=2).map(str),
    st.integers(0, 10**15),
    st.integers(1, 10**15),
    st.lists(st.decimals(0, 1, places=3).map(str), max_size=4),
)
def test_no_line_takes_long_or_fails(
    mean: str, accepted: int, drafted: int, rates: list[str]
) -> None:
    steps, _ = printed_steps(mean, accepted, drafted, rates)
    assert steps is None or 1 <= steps <= 10**15
