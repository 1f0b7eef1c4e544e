"""The pass over a log against the engine's suffix cache, asked step by step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replay.answers import answer_of, check_counts
from tests.replay.lookup.logs import answers

from outrider.engine.drafting.lookup.suffix_cache import SuffixCache
from outrider.replay.answer import LoggedAnswer
from outrider.replay.batch import AnswerBatch
from outrider.replay.lookup.suffix import SuffixPass, SuffixSetting
from outrider.replay.walk import Tally, tally


def steps_by_the_cache(
    log: list[LoggedAnswer], k: int, setting: SuffixSetting
) -> list[list[tuple[int, int]]]:
    """(drafted, accepted) of each decode step of each answer, one answer after the other."""
    cache = SuffixCache(setting.max_tree_depth, setting.max_cached_requests)
    factor, least = np.float32(setting.max_spec_factor), np.float32(setting.min_token_prob)
    told = []
    for name, answer in enumerate(log):
        request = cache.begin(name, len(answer.prompt))
        tokens = np.concatenate([answer.prompt, answer.completion])
        known, steps = len(answer.prompt) + 1, []
        while known < len(tokens):
            emitted = known - len(answer.prompt)
            left = k if answer.max_tokens is None else answer.max_tokens - emitted - 1
            room = np.empty(min(k, left), np.int32)
            drafted = cache.draft(request, tokens[:known], room, factor, least)[0]
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


def tallied(log: list[LoggedAnswer], ks: tuple[int, ...], setting: SuffixSetting) -> list[Tally]:
    batch = AnswerBatch.of(log)
    runs = SuffixPass(setting).runs(batch, ks)
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
    setting = SuffixSetting(depth, cached, factor, least)
    for told in tallied(log, (1, 4, 16), setting):
        for answer, steps in enumerate(steps_by_the_cache(log, told.k, setting)):
            check_counts(told, answer, steps)


def test_more_than_the_first_nodes_are_made_room_for() -> None:
    generator = np.random.default_rng(1)
    log = [
        answer_of(generator.integers(0, 9, 300).tolist(), generator.integers(0, 9, 300).tolist())
        for _ in range(4)
    ]
    setting = SuffixSetting(24, 10, 1.0, 0.0)
    [told] = tallied(log, (8,), setting)
    for answer, steps in enumerate(steps_by_the_cache(log, 8, setting)):
        check_counts(told, answer, steps)


def test_a_pass_remembers_answers_from_batch_to_batch() -> None:
    story = list(range(50, 90))
    first, second = answer_of([1, 2], story), answer_of([3, 4], story)
    suffix = SuffixPass(SuffixSetting(24, 10, 1.0, 0.1))
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
    [told] = tallied(log, (4,), SuffixSetting(24, cached + 1, 1.0, 0.1))
    assert bool(told.drafted[2]) is drafted


def test_a_setting_is_named_by_what_is_not_the_default() -> None:
    assert SuffixSetting(24, 10_000, 1.0, 0.1).name == "suffix"
    assert SuffixSetting(64, 0, 2.0, 0.1).name == "suffix depth 64 factor 2 own text only"
