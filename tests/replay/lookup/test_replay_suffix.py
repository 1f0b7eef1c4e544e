"""The pass over a log against the engine's suffix cache, asked step by step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replay.answers import answer_of, check_counts
from tests.replay.lookup.logs import answers

from outrider.engine.drafting.lookup.suffix_cache import SuffixCache
from outrider.engine.drafting.lookup.suffix_settings import SuffixSettings
from outrider.replay.answer import LoggedAnswer
from outrider.replay.batch import AnswerBatch
from outrider.replay.lookup.suffix import SuffixPass, SuffixSetting
from outrider.replay.walk import Tally, tally


def steps_by_the_cache(
    log: list[LoggedAnswer], k: int, asked: SuffixSettings
) -> list[list[tuple[int, int]]]:
    """(drafted, accepted) of each decode step of each answer, one answer after the other."""
    cache = SuffixCache(asked)
    told = []
    for name, answer in enumerate(log):
        request = cache.begin(name, len(answer.prompt))
        tokens = np.concatenate([answer.prompt, answer.completion])
        known, steps = len(answer.prompt) + 1, []
        while known < len(tokens):
            emitted = known - len(answer.prompt)
            left = k if answer.max_tokens is None else answer.max_tokens - emitted - 1
            room = np.empty(min(k, left), np.int32)
            drafted = cache.draft(request, tokens[:known], room)[0]
            proposed, rest = room[:drafted].tolist(), tokens[known:].tolist()
            accepted = 0
            while accepted < min(drafted, len(rest)) and proposed[accepted] == rest[accepted]:
                accepted += 1
            steps.append((drafted, accepted))
            known += accepted + 1
        cache.extend(request, tokens)
        cache.end(request)
        told.append(steps)
    return told


def tallied(log: list[LoggedAnswer], ks: tuple[int, ...], asked: SuffixSettings) -> list[Tally]:
    batch = AnswerBatch.of(log)
    runs = SuffixPass(asked).runs(batch, ks)
    return [tally(batch, runs, place, k) for place, k in enumerate(ks)]


@settings(max_examples=60, deadline=None)
@given(
    log=st.lists(answers(), min_size=1, max_size=6),
    depth=st.sampled_from([3, 24]),
    cached=st.sampled_from([0, 2, 100]),
    factor=st.sampled_from([1.0, 2.0]),
    least=st.sampled_from([0.0, 0.1, 0.6]),
)
def test_every_k_counts_the_very_steps_that_the_engines_cache_would_make(
    log: list[LoggedAnswer], depth: int, cached: int, factor: float, least: float
) -> None:
    asked = SuffixSettings(depth, cached, factor, least)
    for told in tallied(log, (1, 4, 16), asked):
        for answer, steps in enumerate(steps_by_the_cache(log, told.k, asked)):
            check_counts(told, answer, steps)


def test_more_than_the_first_nodes_are_made_room_for() -> None:
    generator = np.random.default_rng(1)
    log = [
        answer_of(generator.integers(0, 9, 300).tolist(), generator.integers(0, 9, 300).tolist())
        for _ in range(4)
    ]
    asked = SuffixSettings(24, 10, 1.0, 0.0)
    [told] = tallied(log, (8,), asked)
    for answer, steps in enumerate(steps_by_the_cache(log, 8, asked)):
        check_counts(told, answer, steps)


def test_a_pass_remembers_answers_from_batch_to_batch() -> None:
    story = list(range(50, 90))
    first, second = answer_of([1, 2], story), answer_of([3, 4], story)
    suffix = SuffixPass(SuffixSettings(24, 10, 1.0, 0.1))
    drafted = []
    for answer in (first, second):
        batch = AnswerBatch.of([answer])
        drafted.append(int(tally(batch, suffix.runs(batch, (4,)), 0, 4).drafted[0]))
    assert drafted[0] == 0 < drafted[1]


@pytest.mark.parametrize(("cached", "drafted"), [(2, True), (1, False)])
def test_an_answer_beyond_the_cache_is_forgotten(cached: int, drafted: bool) -> None:
    story = list(range(50, 90))
    log = [answer_of([1, 2], story), answer_of([5], list(range(200, 203))), answer_of([3], story)]
    # The current answer is in the cache too, as on vLLM.
    [told] = tallied(log, (4,), SuffixSettings(24, cached + 1, 1.0, 0.1))
    assert bool(told.drafted[2]) is drafted


def test_without_a_prompt_the_whole_text_so_far_is_no_match() -> None:
    # As in the rules of arctic-inference: a match is shorter than the text.
    log = [answer_of([9], [1, 2, 3, 4]), answer_of([], [1, 2, 3, 4])]
    [told] = tallied(log, (4,), SuffixSettings(24, 10, 1.0, 0.1))
    # After 1 alone nothing is drafted; after 1 2 the 3 is.
    assert told.drafted[1] == 1
    assert told.decode_steps[1] == 2


def test_a_setting_is_named_by_what_is_not_the_default() -> None:
    assert SuffixSetting(SuffixSettings()).name == "suffix"
    told = SuffixSetting(SuffixSettings(64, 0, 2.0))
    assert told.name == "suffix depth 64 factor 2 own text only"
