from collections.abc import Callable

import numpy as np
import pytest
from tests.engine.loops import CountingModel, engine_of, finish, request

from outrider.engine.drafting.lookup.suffix_settings import SuffixSettings
from outrider.engine.drafting.suffix import SuffixDrafter
from outrider.engine.sequence import Sequence
from outrider.errors import InvalidSetting
from outrider.records.arm import Arm


def drafted(drafter: SuffixDrafter, *sequences: Sequence, limit: int = 4) -> list[list[int]]:
    draft = drafter.propose(list(sequences), np.full(len(sequences), limit))
    for row, length in enumerate(draft.lengths):
        assert (draft.tokens[row, length:] == -1).all()
    assert draft.probabilities is None
    return [row[:n].tolist() for row, n in zip(draft.tokens, draft.lengths, strict=True)]


def test_each_sequence_of_a_batch_has_its_own_draft() -> None:
    drafter = SuffixDrafter(4)
    batch = [request(prompt, 9, str(i)) for i, prompt in enumerate(([1, 2, 1], [6, 7], [3, 4, 3]))]
    assert drafted(drafter, *batch) == [[2], [], [4]]


def test_a_draft_has_no_more_tokens_than_the_limit_and_than_k() -> None:
    drafter = SuffixDrafter(3, SuffixSettings(max_spec_factor=9.0))
    sequence = request([1, 2, 3, 4, 5, 6, 1], 20)
    assert drafted(drafter, sequence, limit=9) == [[2, 3, 4]]
    assert drafted(drafter, sequence, limit=2) == [[2, 3]]
    assert drafted(drafter, sequence, limit=0) == [[]]


def test_an_answer_that_has_ended_drafts_for_the_next_request_to_its_last_token() -> None:
    drafter = SuffixDrafter(8, SuffixSettings(max_spec_factor=8.0))
    engine, recorder = engine_of(CountingModel(), drafter, 8)
    engine.add(request([0], 12, "first"))
    finish(engine)
    second = request([50, 0], 14, "second")
    engine.add(second)
    finish(engine)
    assert second.output_token_ids.tolist() == list(range(1, 15))
    assert sum(step.accepted for step in recorder.take(second).steps) == 10


def forgotten(drafter: SuffixDrafter) -> None:
    sequence = request([1, 2, 1], 9, "forgotten")
    drafted(drafter, sequence)
    drafter.forget(sequence)
    drafter.forget(sequence)


def ended(drafter: SuffixDrafter) -> None:
    engine, _ = engine_of(CountingModel(), drafter, 4)
    engine.add(request([1, 2, 1], 9, "ended"))
    finish(engine)


def cancelled(drafter: SuffixDrafter) -> None:
    engine, _ = engine_of(CountingModel(), drafter, 4)
    engine.add(request([1, 2, 1], 9, "cancelled"))
    engine.step()
    engine.step()
    engine.cancel("cancelled")


@pytest.mark.parametrize("leave", [forgotten, ended, cancelled])
def test_a_sequence_that_is_gone_leaves_only_its_answer(
    leave: Callable[[SuffixDrafter], None],
) -> None:
    drafter = SuffixDrafter(4, SuffixSettings(max_cached_requests=0))
    nothing = drafter.cache.forest.live_nodes
    leave(drafter)
    assert drafter.cache.forest.live_nodes == nothing
    assert not drafter._requests


def test_a_preempted_sequence_keeps_what_was_learned_of_it() -> None:
    drafter = SuffixDrafter(4)
    sequence, other = request([1, 2, 3], 9, "a"), request([7, 8], 9, "b")
    drafted(drafter, sequence, other)
    sequence.append([1])
    drafted(drafter, other)  # a step without it
    assert drafted(drafter, sequence) == [[2]]
    assert drafter.cache.cached_requests == 2


def test_an_arm_gives_k_and_vllms_defaults_the_rest() -> None:
    drafter = SuffixDrafter.from_arm(Arm("s", "suffix", 7))
    assert drafter == SuffixDrafter(7, SuffixSettings(24, 10_000, 1.0, 0.1))


def test_k_below_1_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="K = 0"):
        SuffixDrafter(0)
