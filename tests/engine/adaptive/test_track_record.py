from math import log

import pytest

from outrider.engine.adaptive.track_record import MEMORY, TrackRecord


def test_nothing_known_is_even_odds() -> None:
    assert TrackRecord().log_odds == 0.0


def test_accepted_tokens_raise_the_odds_and_a_rejected_one_lowers_them() -> None:
    assert TrackRecord().after(4, 4).log_odds == pytest.approx(log(4.5 / 0.5))
    assert TrackRecord().after(4, 0).log_odds == pytest.approx(log(0.5 / 1.5))


def test_what_follows_the_first_rejected_token_says_nothing() -> None:
    assert TrackRecord().after(8, 2) == TrackRecord().after(3, 2)


def test_recent_steps_count_most() -> None:
    better, worse = TrackRecord().after(1, 0).after(1, 1), TrackRecord().after(1, 1).after(1, 0)
    assert better.log_odds > worse.log_odds
    assert better == TrackRecord(1.0, MEMORY)
