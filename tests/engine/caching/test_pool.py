import pytest

from outrider.engine.caching.pool import BlockPool


def taken(pool: BlockPool, count: int) -> list[int]:
    return [pool.take() for _ in range(count)]


def test_every_block_is_handed_out_once() -> None:
    pool = BlockPool(4)
    assert sorted(taken(pool, 4)) == [0, 1, 2, 3]
    assert pool.free_blocks == 0


def test_released_blocks_are_free_at_once() -> None:
    pool = BlockPool(3)
    blocks = taken(pool, 3)
    pool.release(blocks[:2])
    assert pool.free_blocks == 2
    assert set(taken(pool, 2)) == set(blocks[:2])


def test_a_shared_block_is_free_when_its_last_holder_gives_it_up() -> None:
    pool = BlockPool(1)
    block = pool.take()
    pool.share(block)
    pool.release([block])
    assert pool.free_blocks == 0
    pool.release([block])
    assert pool.free_blocks == 1


def test_a_named_block_is_found_when_nobody_holds_it_and_can_be_held_again() -> None:
    pool = BlockPool(2)
    block = pool.take()
    pool.name(block, b"a")
    pool.release([block])
    assert pool.find(b"a") == block
    pool.share(block)
    assert pool.free_blocks == 1
    assert pool.take() != block


def test_a_block_that_is_needed_for_something_else_is_found_no_more() -> None:
    pool = BlockPool(1)
    block = pool.take()
    pool.name(block, b"a")
    pool.release([block])
    assert pool.take() == block
    assert pool.find(b"a") is None


def test_what_was_free_for_longest_is_reused_first_and_of_a_sequence_its_end() -> None:
    pool = BlockPool(4)
    first, second = taken(pool, 2), taken(pool, 2)
    pool.release(second)
    pool.release(first)
    assert taken(pool, 4) == [second[1], second[0], first[1], first[0]]


def test_a_found_block_counts_as_used_again() -> None:
    pool = BlockPool(2)
    old, new = taken(pool, 2)
    pool.name(old, b"old")
    pool.release([old])
    pool.release([new])
    pool.share(old)
    pool.release([old])
    assert pool.take() == new


def test_of_two_blocks_with_the_same_content_the_first_is_found() -> None:
    pool = BlockPool(2)
    first, second = taken(pool, 2)
    pool.name(first, b"a")
    pool.name(second, b"a")
    assert pool.find(b"a") == first
    pool.release([second])
    assert pool.take() == second
    assert pool.find(b"a") == first


def test_an_empty_pool_has_nothing_to_take() -> None:
    with pytest.raises(StopIteration):
        BlockPool(0).take()
