import doctest
from dataclasses import replace

import pytest

from outrider.server.metrics import request_times
from outrider.server.metrics.request_times import RequestTimes, timing_fields

TIMES = RequestTimes(arrived=9.0, queued=10.0, scheduled=11.0, first_token=13.0, last_token=21.0)


def test_the_five_fields_are_spans_between_the_marks() -> None:
    assert timing_fields(TIMES, 5) == {
        "time_to_first_token_ms": 2000.0,
        "generation_time_ms": 8000.0,
        "queue_time_ms": 1000.0,
        "mean_itl_ms": 2000.0,
        "tokens_per_second": 0.5,
    }


def test_one_token_has_no_gap_and_a_generation_time_of_zero() -> None:
    found = timing_fields(replace(TIMES, last_token=13.0), 1)
    assert found["mean_itl_ms"] is None
    assert found["generation_time_ms"] == 0.0
    assert found["tokens_per_second"] == 0.5


@pytest.mark.parametrize(
    ("missing", "null"),
    [
        (
            "scheduled",
            {"time_to_first_token_ms", "queue_time_ms", "tokens_per_second"},
        ),
        ("first_token", {"time_to_first_token_ms", "generation_time_ms", "mean_itl_ms"}),
        ("last_token", {"generation_time_ms", "mean_itl_ms", "tokens_per_second"}),
    ],
)
def test_what_needs_a_missing_mark_is_null(missing: str, null: set[str]) -> None:
    times = replace(TIMES)
    setattr(times, missing, None)
    found = timing_fields(times, 5)
    assert {name for name, value in found.items() if value is None} == null


def test_a_span_of_zero_has_no_rate() -> None:
    assert timing_fields(replace(TIMES, last_token=11.0), 5)["tokens_per_second"] is None


def test_the_example_holds() -> None:
    results = doctest.testmod(request_times)
    assert (results.attempted, results.failed) == (2, 0)
