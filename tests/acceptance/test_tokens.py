"""Tokens per second are of emitted tokens."""

import pytest

from outrider.acceptance.tokens import emitted_tokens_per_s, peak_below_average


def test_rejected_drafts_are_no_output() -> None:
    assert emitted_tokens_per_s(503, 29.56) == pytest.approx(17.02, abs=5e-3)
    # The mistaken figure counts the 42 rejected of 426 drafted tokens too.
    assert emitted_tokens_per_s(503 + 426 - 384, 29.56) == pytest.approx(18.44, abs=5e-3)
    assert emitted_tokens_per_s(1000, 14.3288) == pytest.approx(69.79, abs=5e-3)


def test_no_time_is_no_speed() -> None:
    assert emitted_tokens_per_s(10, 0) is None


def test_a_peak_below_its_average_shows_that_chunks_were_counted() -> None:
    assert peak_below_average(111.00, 414.75)
    assert not peak_below_average(414.75, 414.75)
    assert not peak_below_average(500, 414.75)
