import pytest
from tests.engine.loops import request

from outrider.engine.caching.cache import BlockCache
from outrider.engine.models.base import BLOCK_TOKENS as BLOCK
from outrider.engine.scheduling.limits import Limits
from outrider.engine.scheduling.scheduler import Piece, Scheduler
from outrider.engine.sequence import Sequence
from outrider.errors import InvalidSetting


def scheduler_of(
    *sequences: Sequence,
    blocks: int = 100,
    seqs: int = 8,
    tokens: int = 1000,
    prefix_caching: bool = False,
) -> Scheduler:
    cache = BlockCache(blocks, prefix_caching=prefix_caching)
    scheduler = Scheduler(cache, Limits(seqs, tokens))
    for sequence in sequences:
        scheduler.add(sequence)
    return scheduler


def prompted(tokens: int, name: str = "r", max_tokens: int = 100) -> Sequence:
    return request([1] * tokens, max_tokens, name)


def carry_out(pieces: list[Piece], emitted: int = 1) -> None:
    """What a step does to its sequences: `emitted` tokens each where it is their turn."""
    for piece in pieces:
        piece.sequence.computed_tokens += piece.tokens
        if piece.completes:
            piece.sequence.append([2] * emitted)
            piece.sequence.computed_tokens += emitted - 1


def told(pieces: list[Piece]) -> list[tuple[str, int, int]]:
    return [(p.sequence.request_id, p.tokens, p.draft_limit) for p in pieces]


def test_a_prompt_is_computed_without_a_draft_and_then_every_step_has_one() -> None:
    scheduler = scheduler_of(prompted(10))
    pieces = scheduler.schedule(4)
    assert told(pieces) == [("r", 10, 0)]
    assert pieces[0].completes
    assert pieces[0].prefill
    carry_out(pieces)
    pieces = scheduler.schedule(4)
    assert told(pieces) == [("r", 1, 4)]
    assert not pieces[0].prefill


def test_a_long_prompt_is_computed_in_pieces_and_gives_a_token_with_the_last() -> None:
    scheduler = scheduler_of(prompted(25), tokens=10)
    seen = []
    for _ in range(3):
        pieces = scheduler.schedule(4)
        seen += [(piece.tokens, piece.completes) for piece in pieces]
        carry_out(pieces)
    assert seen == [(10, False), (10, False), (5, True)]


def test_a_prompt_fills_what_running_requests_leave_of_a_step() -> None:
    scheduler = scheduler_of(prompted(3, "a"), tokens=10)
    carry_out(scheduler.schedule(4))
    scheduler.add(prompted(50, "b"))
    assert told(scheduler.schedule(4)) == [("a", 1, 4), ("b", 5, 0)]


def test_no_running_request_goes_without_its_token_in_a_full_step() -> None:
    scheduler = scheduler_of(*(prompted(1, name) for name in "abcd"), seqs=4, tokens=6)
    carry_out(scheduler.schedule(8))
    assert told(scheduler.schedule(8)) == [("a", 1, 2), ("b", 1, 0), ("c", 1, 0), ("d", 1, 0)]


def test_the_first_to_come_is_the_first_to_run() -> None:
    scheduler = scheduler_of(*(prompted(4, name) for name in "abc"), seqs=2)
    assert [name for name, _, _ in told(scheduler.schedule(0))] == ["a", "b"]
    scheduler.remove(scheduler.running[0])
    carry_out(scheduler.schedule(0))
    assert [each.request_id for each in scheduler.running] == ["b", "c"]


def test_the_last_token_that_fits_has_no_draft_and_the_one_before_a_draft_of_one() -> None:
    sequence = prompted(4, max_tokens=3)
    scheduler = scheduler_of(sequence)
    carry_out(scheduler.schedule(4))
    assert told(scheduler.schedule(4)) == [("r", 1, 1)]
    carry_out(scheduler.schedule(4))
    assert told(scheduler.schedule(4)) == [("r", 1, 0)]


def test_a_draft_gives_way_before_any_request_does() -> None:
    # Two blocks each hold all but the drafts of the first.
    first, second = prompted(BLOCK - 2, "a", 2 * BLOCK), prompted(10, "b", 10)
    scheduler = scheduler_of(first, second, blocks=3)
    carry_out(scheduler.schedule(0))
    scheduler.cache.pool.take()
    assert told(scheduler.schedule(4)) == [("a", 1, 0), ("b", 1, 4)]
    assert scheduler.preemptions == 0


def test_the_last_to_come_gives_its_blocks_up_and_is_computed_again_from_the_start() -> None:
    first, second = prompted(BLOCK - 1, "a", 2 * BLOCK), prompted(BLOCK - 1, "b", 2 * BLOCK)
    scheduler = scheduler_of(first, second, blocks=3)
    for _ in range(2):
        carry_out(scheduler.schedule(0))
    assert told(scheduler.schedule(0)) == [("a", 1, 0)]
    assert scheduler.preemptions == 1
    assert list(scheduler.waiting) == [second]
    assert second.block_table == []
    assert second.computed_tokens == 0
    scheduler.remove(first)
    pieces = scheduler.schedule(4)
    assert told(pieces) == [("b", BLOCK + 1, 0)]
    assert pieces[0].completes
    assert not pieces[0].prefill


def test_a_request_gives_up_its_own_blocks_if_it_came_last() -> None:
    first, second = prompted(10, "a", 20), prompted(BLOCK, "b", BLOCK)
    scheduler = scheduler_of(first, second, blocks=2)
    carry_out(scheduler.schedule(0))
    assert told(scheduler.schedule(0)) == [("a", 1, 0)]
    assert list(scheduler.waiting) == [second]


def test_nobody_new_begins_in_a_step_that_took_blocks_away() -> None:
    first, second = prompted(BLOCK, "a", BLOCK), prompted(BLOCK, "b", BLOCK)
    scheduler = scheduler_of(first, second, blocks=2)
    carry_out(scheduler.schedule(0))
    scheduler.add(prompted(1, "small", 1))
    assert told(scheduler.schedule(0)) == [("a", 1, 0)]


def test_a_waiting_request_keeps_those_behind_it_waiting() -> None:
    scheduler = scheduler_of(prompted(BLOCK, "a", 1), blocks=2)
    scheduler.schedule(0)
    scheduler.add(prompted(BLOCK + 9, "large", 1))
    scheduler.add(prompted(1, "small", 1))
    assert [name for name, _, _ in told(scheduler.schedule(0))] == ["a"]


def test_what_was_cached_is_what_was_there_when_the_request_began_to_run() -> None:
    first, second = (prompted(2 * BLOCK + 1, name, max_tokens=1) for name in "ab")
    scheduler = scheduler_of(first, second, blocks=3, prefix_caching=True)
    pieces = scheduler.schedule(0)
    assert told(pieces) == [("a", 2 * BLOCK + 1, 0)]
    assert (first.cached_tokens, second.cached_tokens) == (0, None)
    first.computed_tokens = len(first)
    scheduler.cache.keep(first)
    scheduler.remove(first)
    assert told(scheduler.schedule(0)) == [("b", 1, 0)]
    assert second.cached_tokens == 2 * BLOCK


def test_a_request_that_can_never_fit_is_refused_with_the_numbers() -> None:
    with pytest.raises(InvalidSetting, match=r"may take 200 tokens, 4 blocks.*at most the 3"):
        scheduler_of(prompted(100), blocks=3)


@pytest.mark.parametrize("running", [True, False])
def test_the_blocks_of_a_removed_request_are_free_at_once(running: bool) -> None:
    sequence = prompted(100)
    scheduler = scheduler_of(sequence, blocks=5)
    if running:
        scheduler.schedule(0)
    scheduler.remove(sequence)
    assert scheduler.cache.pool.free_blocks == 5
    assert scheduler.schedule(0) == []
