from math import log

import numpy as np
import pytest

from outrider.engine.adaptive.track_records import MATCH_MEMORY, TrackRecord, TrackRecords
from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.sequence import Sequence

MEMORY = 0.5


def record(*steps: tuple[int, int]) -> TrackRecord:
    """After drafts of so many verified and accepted tokens."""
    found = TrackRecord()
    for verified, accepted in steps:
        found = found.after(verified, accepted, MEMORY)
    return found


def test_nothing_known_is_even_odds() -> None:
    assert TrackRecord().log_odds == 0.0


def test_accepted_tokens_raise_the_odds_and_a_rejected_one_lowers_them() -> None:
    assert record((4, 4)).log_odds == pytest.approx(log(4.5 / 0.5))
    assert record((4, 0)).log_odds == pytest.approx(log(0.5 / 1.5))


def test_what_follows_the_first_rejected_token_says_nothing() -> None:
    assert record((8, 2)) == record((3, 2))


def test_recent_steps_count_most() -> None:
    better, worse = record((1, 0), (1, 1)), record((1, 1), (1, 0))
    assert better.log_odds > worse.log_odds
    assert better == TrackRecord(1.0, MEMORY)


def requests(count: int) -> list[Sequence]:
    sampling = Sampling.seeded(SamplingParameters())
    return [Sequence(str(i), [1, 2], max_tokens=9, sampling=sampling) for i in range(count)]


def found_with(*matched: int, lengths: int = 2) -> Draft:
    batch = len(matched)
    return Draft(
        np.ones((batch, 3), np.int32), np.full(batch, lengths), matched_tokens=np.array(matched)
    )


def test_each_request_has_a_record_of_its_own() -> None:
    records, batch = TrackRecords(), requests(2)
    draft = Draft(np.ones((2, 3), np.int32), np.array([3, 3]))
    records.learn(batch, draft, np.array([3, 0]))
    good, bad = records.log_odds(batch, draft)
    assert good > 0 > bad


def test_a_length_of_match_tells_of_other_requests_too() -> None:
    records, newcomer = TrackRecords(), requests(1)
    records.learn(requests(2), found_with(4, 2), np.array([2, 0]))
    long, short, unseen = (records.log_odds(newcomer, found_with(n))[0] for n in (4, 2, 3))
    assert long == pytest.approx(log(2.5 / 0.5))
    assert short == pytest.approx(log(0.5 / 1.5))
    assert unseen == 0.0


def test_the_records_of_request_and_match_add_up() -> None:
    records, batch = TrackRecords(), requests(1)
    records.learn(batch, found_with(4), np.array([2]))
    assert records.log_odds(batch, found_with(4)) == pytest.approx([2 * log(2.5 / 0.5)])
    assert records.matches[4] == TrackRecord(2.0, 0.0)
    records.learn(batch, found_with(4), np.array([1]))
    assert records.matches[4] == TrackRecord(2 * MATCH_MEMORY + 1, 1.0)


def test_what_is_not_verified_leaves_the_records_alone() -> None:
    records, batch = TrackRecords(), requests(1)
    records.learn(batch, found_with(4, lengths=0), np.array([0]))
    assert records.log_odds(batch, found_with(4)) == [0.0]


def test_requests_that_are_gone_are_forgotten() -> None:
    records, batch = TrackRecords(), requests(1)
    records.learn(batch, found_with(4), np.array([2]))
    assert len(records.requests) == 1
    batch.clear()
    assert len(records.requests) == 0
