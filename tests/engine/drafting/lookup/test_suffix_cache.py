import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from outrider.engine.drafting.lookup.suffix_cache import SuffixCache, SuffixRequest
from outrider.engine.drafting.lookup.suffix_settings import SuffixSettings
from outrider.errors import InvalidSetting


def ids(*tokens: int) -> NDArray[np.int32]:
    return np.array(tokens, np.int32)


def drafted(
    cache: SuffixCache, request: SuffixRequest, *tokens: int, k: int = 8
) -> tuple[list[int], float]:
    room = np.empty(k, np.int32)
    length, score = cache.draft(request, ids(*tokens), room)
    return room[:length].tolist(), score


def answered(cache: SuffixCache, name: int, prompt: list[int], answer: list[int]) -> None:
    """A request that has come and gone."""
    request = cache.begin(name, len(prompt))
    cache.extend(request, ids(*prompt, *answer))
    cache.end(request)


def test_what_followed_in_the_text_itself_is_drafted_as_long_as_the_match() -> None:
    cache = SuffixCache(SuffixSettings(max_cached_requests=0))
    request = cache.begin("a", 8)
    tokens, score = drafted(cache, request, 1, 2, 3, 4, 5, 1, 2, 3)
    assert tokens == [4, 5, 1]
    # The ending counts as an occurrence that nothing followed: 1 of 2.
    assert score == pytest.approx(1.5)


def test_of_two_continuations_the_more_frequent_is_drafted() -> None:
    cache = SuffixCache(SuffixSettings(max_cached_requests=0, min_token_prob=0.0))
    request = cache.begin("a", 1)
    assert drafted(cache, request, 1, 7, 1, 8, 1, 8, 2, 1) == ([8], 0.5)


def test_an_answer_is_drafted_for_later_requests_and_a_prompt_is_not() -> None:
    cache = SuffixCache(SuffixSettings())
    answered(cache, 0, [50, 51, 52], [10, 11, 12, 13])
    request = cache.begin(1, 2)
    assert drafted(cache, request, 9, 10, 11) == ([12, 13], 2.0)
    other = cache.begin(2, 3)
    assert drafted(cache, other, 7, 50, 51)[0] == []


def test_without_cached_requests_an_answer_is_forgotten_at_once() -> None:
    cache = SuffixCache(SuffixSettings(max_cached_requests=0))
    answered(cache, 0, [50], [10, 11, 12])
    assert drafted(cache, cache.begin(1, 3), 9, 10, 11) == ([], 0.0)
    assert cache.cached_requests == 0


def test_the_oldest_answer_leaves_first_whether_it_is_finished_or_not() -> None:
    cache = SuffixCache(SuffixSettings(max_cached_requests=2))
    running = cache.begin(0, 1)
    cache.extend(running, ids(9, 10, 11, 12))
    answered(cache, 1, [9], [20, 21, 22])
    answered(cache, 2, [9], [30, 31, 32])
    assert cache.cached_requests == 2
    request = cache.begin(3, 2)  # which makes 1 leave too
    assert drafted(cache, request, 7, 10)[0] == []
    assert drafted(cache, request, 7, 10, 20)[0] == []
    assert drafted(cache, request, 7, 10, 20, 30)[0] == [31]
    # The running one goes on, from its own text.
    assert drafted(cache, running, 9, 10, 11, 12, 10, 11)[0] == [12, 10]


def test_a_name_that_comes_again_takes_the_place_of_its_earlier_answer() -> None:
    cache = SuffixCache(SuffixSettings())
    answered(cache, 0, [9], [10, 11, 12])
    answered(cache, 0, [9], [10, 21, 22])
    assert cache.cached_requests == 1
    assert drafted(cache, cache.begin(1, 3), 7, 8, 10)[0] == [21]


TEXT = st.lists(st.integers(0, 2), min_size=1, max_size=40)


@settings(deadline=None, max_examples=150)
@given(
    texts=st.lists(TEXT, min_size=1, max_size=12),
    depth=st.integers(1, 9),
    kept=st.integers(0, 3),
)
def test_all_nodes_come_back_but_those_of_the_answers_that_are_kept(
    texts: list[list[int]], depth: int, kept: int
) -> None:
    cache = SuffixCache(SuffixSettings(depth, kept))
    for name, text in enumerate(texts):
        answered(cache, name, text[:1], text[1:])
    assert cache.cached_requests == min(kept, len(texts))
    alone = SuffixCache(SuffixSettings(depth, max(kept, 1)))
    if kept:
        for name, text in enumerate(texts[-kept:]):
            answered(alone, name, text[:1], text[1:])
    # A node may be left for every token of an ending that an answer shared with one that left.
    least = alone.forest.live_nodes
    assert least <= cache.forest.live_nodes <= least + kept * depth * depth


@settings(deadline=None, max_examples=100)
@given(text=TEXT, runs=st.lists(st.integers(1, 7)), depth=st.integers(1, 9))
def test_a_text_that_grows_gives_the_drafts_of_one_that_came_whole(
    text: list[int], runs: list[int], depth: int
) -> None:
    setting = SuffixSettings(depth, 0, 2.0)
    growing = SuffixCache(setting)
    request = growing.begin("a", 1)
    end = 0
    for run in [*runs, len(text)]:
        end = min(end + run, len(text))
        whole = SuffixCache(setting)
        expected = drafted(whole, whole.begin("a", 1), *text[:end])
        assert drafted(growing, request, *text[:end]) == expected


def test_memory_stays_within_bounds_however_many_requests_come() -> None:
    source = np.random.default_rng(0)
    cache = SuffixCache(SuffixSettings(24, 20))
    sizes = []
    for name in range(400):
        request = cache.begin(name, 50)
        cache.extend(request, source.integers(0, 30, 150).astype(np.int32))
        cache.end(request)
        if name in (99, 399):
            sizes.append(cache.forest.nbytes)
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tree_depth", 0),
        ("max_cached_requests", -1),
        ("max_spec_factor", -0.5),
        ("max_spec_factor", float("nan")),
        ("min_token_prob", -0.1),
        ("min_token_prob", 1.1),
    ],
)
def test_a_setting_outside_its_range_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(InvalidSetting, match=f"suffix_decoding_{name}"):
        SuffixSettings(**{name: value})  # type: ignore[arg-type]
