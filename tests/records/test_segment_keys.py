"""The bands that numbers fall into, and the keys that a record brings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.reading import AcceptanceRecord, TagValue
from outrider.records.segment_keys import (
    concurrency_band,
    length_band,
    segment_values,
    temperature_band,
)


def ends(band: str) -> tuple[int, int]:
    low, _, high = band.partition("–")
    return int(low), int(high or low)


@given(st.integers(0, 2**30))
def test_every_length_lies_within_its_band(tokens: int) -> None:
    band = length_band(tokens)
    assert band is not None
    low, high = ends(band)
    assert low <= tokens <= high
    assert low == 0 or (high + 1) / low == 4
    assert length_band(low) == length_band(high) == band
    assert length_band(high + 1) != band


def test_an_unknown_length_has_no_band() -> None:
    assert length_band(None) is None


def test_a_length_beyond_all_reason_still_falls_into_a_band() -> None:
    assert length_band(2**53) is not None


@pytest.mark.parametrize(
    ("temperature", "band"),
    [
        (0, "0"),
        (-1, "0"),
        (0.01, "0–0.5"),
        (0.5, "0–0.5"),
        (0.8, "0.5–1"),
        (1, "0.5–1"),
        (1.5, "1–1.5"),
        (2, "above 1.5"),
    ],
)
def test_temperatures_fall_into_bands_of_half_a_degree(temperature: float, band: str) -> None:
    assert temperature_band(temperature) == band


@given(st.integers(1, 2**20))
def test_concurrency_lies_between_two_powers_of_two(concurrency: int) -> None:
    low, high = ends(concurrency_band(concurrency))
    assert low <= concurrency <= high
    assert low & (low - 1) == 0
    assert high + 1 == 2 * low


@pytest.mark.parametrize("name", ["temperature", "concurrency"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")], ids=repr)
def test_a_number_that_is_not_finite_is_kept_as_text(name: str, value: float) -> None:
    record = AcceptanceRecord(engine="x", tags={name: value})
    assert segment_values(record) == {name: f"{value:g}"}


@pytest.mark.parametrize(
    ("value", "text"),
    [("code", "code"), (3, "3"), (0.5, "0.5"), (1e-7, "1e-07"), (True, "yes"), (False, "no")],
)
def test_values_of_tags_become_text(value: TagValue, text: str) -> None:
    assert segment_values(AcceptanceRecord(engine="x", tags={"kind": value})) == {"kind": text}


def test_a_temperature_tells_the_sampling_too() -> None:
    greedy = segment_values(AcceptanceRecord(engine="x", tags={"temperature": 0}))
    random = segment_values(AcceptanceRecord(engine="x", tags={"temperature": 0.8}))
    assert greedy == {"sampling": "greedy", "temperature": "0"}
    assert random == {"sampling": "random", "temperature": "0.5–1"}


def test_a_temperature_given_as_text_is_left_as_it_is() -> None:
    assert segment_values(AcceptanceRecord(engine="x", tags={"temperature": "hot"})) == {
        "temperature": "hot"
    }


def test_lengths_are_keys_of_single_answers_only() -> None:
    one = AcceptanceRecord(engine="x", prompt_tokens=20, completion_tokens=200)
    many = AcceptanceRecord(engine="x", prompt_tokens=20, completion_tokens=200, requests=9)
    assert segment_values(one) == {"prompt_length": "0–127", "output_length": "128–511"}
    assert "output_length" not in segment_values(many)
