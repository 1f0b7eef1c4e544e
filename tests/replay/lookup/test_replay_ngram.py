"""The pass over a log against the engine's drafter, asked step by step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replay.answers import answer_of, check_counts, steps_by_the_drafter
from tests.replay.lookup.logs import answers

from outrider.records.arm import TieRule
from outrider.replay.answer import LoggedAnswer
from outrider.replay.batch import AnswerBatch
from outrider.replay.lookup.ngram import NgramPass
from outrider.replay.walk import Tally, tally

TIES: tuple[TieRule, ...] = ("recent", "earliest")


def tallied(
    answers: list[LoggedAnswer],
    ks: tuple[int, ...],
    shortest: int,
    longest: int,
    tie: TieRule,
    *,
    fill: bool = False,
) -> list[Tally]:
    batch = AnswerBatch.of(answers)
    runs = NgramPass(shortest, longest, tie, fill).runs(batch, ks)
    return [tally(batch, runs, place, k) for place, k in enumerate(ks)]


@settings(max_examples=300, deadline=None)
@given(
    log=st.lists(answers(), min_size=1, max_size=4),
    shortest=st.integers(1, 4),
    more=st.integers(0, 3),
    tie=st.sampled_from(TIES),
    fill=st.booleans(),
)
def test_every_k_counts_the_very_steps_that_the_engines_drafter_would_make(
    log: list[LoggedAnswer], shortest: int, more: int, tie: TieRule, fill: bool
) -> None:
    ks = (1, 3, 16)
    longest = shortest + more
    for each in tallied(log, ks, shortest, longest, tie, fill=fill):
        for place, answer in enumerate(log):
            made = steps_by_the_drafter(answer, each.k, shortest, longest, tie, fill=fill)
            check_counts(each, place, made)


@pytest.mark.parametrize("tie", TIES)
@pytest.mark.parametrize("letters", [2, 30, 5000])
def test_a_long_answer_counts_the_same_steps(letters: int, tie: TieRule) -> None:
    generator = np.random.default_rng(letters)
    tokens = generator.integers(0, letters, 3000)
    # A passage that comes again, so that there are long runs as well.
    tokens[1500:2100] = tokens[200:800]
    answer = answer_of(tokens[:1000].tolist(), tokens[1000:].tolist())
    [told] = tallied([answer], (5,), 2, 4, tie)
    check_counts(told, 0, steps_by_the_drafter(answer, 5, 2, 4, tie))


def test_the_answers_of_a_batch_know_nothing_of_each_other() -> None:
    first, second = answer_of([1, 2, 3], [1, 2, 3, 1, 2]), answer_of([7, 1, 2], [3, 9])
    [together] = tallied([first, second], (4,), 1, 2, "recent")
    [alone] = tallied([second], (4,), 1, 2, "recent")
    assert together.histograms[1].tolist() == alone.histograms[0].tolist()
    assert together.drafted[1] == alone.drafted[0] == 0


def test_an_answer_of_one_token_has_no_step() -> None:
    [told] = tallied([answer_of([1, 1, 1], [1])], (4,), 1, 2, "recent")
    assert told.decode_steps[0] == told.drafted[0] == told.histograms.sum() == 0


@pytest.mark.parametrize(("max_tokens", "drafted"), [(None, 4), (8, 4), (6, 4), (5, 3), (4, 2)])
def test_a_draft_leaves_room_for_the_bonus_token(max_tokens: int | None, drafted: int) -> None:
    answer = answer_of([1, 2, 3, 4, 5, 6, 1, 2], [3, 9, 9, 9], max_tokens)
    runs_told = tallied([answer], (4,), 2, 2, "recent")[0]
    assert runs_told.drafted[0] == drafted
