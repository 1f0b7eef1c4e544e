import numpy as np
import pytest
from tests.engine.loops import request

from outrider.engine.caching.cache import BlockCache
from outrider.engine.models.base import BLOCK_TOKENS as BLOCK
from outrider.engine.models.base import blocks_for
from outrider.engine.sequence import Sequence


def prompt(count: int, seed: int = 0) -> list[int]:
    found: list[int] = np.random.default_rng(seed).integers(0, 1000, count).tolist()
    return found


def computed(cache: BlockCache, sequence: Sequence) -> Sequence:
    """The sequence after its prompt has been computed."""
    cache.begin(sequence)
    assert cache.grow(sequence, len(sequence))
    sequence.computed_tokens = len(sequence)
    cache.keep(sequence)
    return sequence


@pytest.mark.parametrize(("tokens", "blocks"), [(0, 0), (1, 1), (BLOCK, 1), (BLOCK + 1, 2)])
def test_blocks_are_counted_up(tokens: int, blocks: int) -> None:
    assert blocks_for(tokens) == blocks


def test_a_sequence_grows_by_whole_blocks_and_only_when_it_must() -> None:
    cache = BlockCache(4)
    sequence = request([1], 200)
    assert cache.grow(sequence, 1)
    assert cache.grow(sequence, BLOCK)
    assert len(sequence.block_table) == 1
    assert cache.grow(sequence, BLOCK + 1)
    assert len(sequence.block_table) == 2


def test_nothing_is_taken_where_there_is_not_enough() -> None:
    cache = BlockCache(2)
    sequence = request([1], 200)
    assert not cache.grow(sequence, 3 * BLOCK)
    assert sequence.block_table == []
    assert cache.pool.free_blocks == 2


def test_an_equal_beginning_is_shared() -> None:
    cache = BlockCache(10, prefix_caching=True)
    common = prompt(2 * BLOCK)
    first = computed(cache, request([*common, 1, 2], 5, "a"))
    second = request([*common, 3], 5, "b")
    cache.begin(second)
    assert second.block_table == first.block_table[:2]
    assert second.computed_tokens == 2 * BLOCK
    assert cache.pool.free_blocks == 7


def test_the_last_token_is_always_computed_because_its_logits_are_needed() -> None:
    cache = BlockCache(10, prefix_caching=True)
    whole = prompt(2 * BLOCK)
    computed(cache, request(whole, 5, "a"))
    second = request(whole, 5, "b")
    cache.begin(second)
    assert second.computed_tokens == BLOCK


def test_nothing_is_shared_unless_asked_for() -> None:
    cache = BlockCache(10)
    whole = prompt(3 * BLOCK)
    computed(cache, request(whole, 5, "a"))
    second = request(whole, 5, "b")
    cache.begin(second)
    assert second.computed_tokens == 0


def test_what_a_finished_sequence_filled_is_found_with_its_answer() -> None:
    cache = BlockCache(10, prefix_caching=True)
    first = computed(cache, request(prompt(BLOCK), 200, "a"))
    answer = prompt(BLOCK + 3, seed=1)
    first.append(answer)
    assert cache.grow(first, len(first))
    first.computed_tokens = len(first) - 1
    cache.keep(first)
    cache.release(first)
    assert cache.pool.free_blocks == 10
    followed_up = request([*prompt(BLOCK), *answer, 9, 9], 5, "b")
    cache.begin(followed_up)
    assert followed_up.computed_tokens == 2 * BLOCK


def test_a_block_is_not_found_before_all_of_it_is_computed() -> None:
    cache = BlockCache(10, prefix_caching=True)
    whole = prompt(BLOCK + 5)
    first = request(whole, 5, "a")
    cache.begin(first)
    cache.grow(first, len(first))
    first.computed_tokens = BLOCK - 1
    cache.keep(first)
    second = request(whole, 5, "b")
    cache.begin(second)
    assert second.computed_tokens == 0
    first.computed_tokens = BLOCK
    cache.keep(first)
    third = request(whole, 5, "c")
    cache.begin(third)
    assert third.computed_tokens == BLOCK


def test_with_a_drafter_that_looks_ahead_an_edge_is_shared_only_where_the_next_tokens_agree() -> (
    None
):
    cache = BlockCache(10, prefix_caching=True, lookahead_tokens=1)
    common = prompt(2 * BLOCK)
    computed(cache, request([*common, 7, 8], 5, "a"))
    same, other = request([*common, 7, 9], 5, "b"), request([*common, 6, 9], 5, "c")
    cache.begin(same)
    cache.begin(other)
    assert same.computed_tokens == 2 * BLOCK
    assert other.computed_tokens == BLOCK


def test_a_preempted_sequence_finds_what_it_had_computed() -> None:
    cache = BlockCache(10, prefix_caching=True)
    first = computed(cache, request(prompt(3 * BLOCK + 1), 5, "a"))
    cache.release(first)
    assert first.computed_tokens == 0
    cache.begin(first)
    assert first.computed_tokens == 3 * BLOCK
