"""One request fails, the engine and the other requests go on."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.engine.loops import (
    VOCABULARY,
    RememberingModel,
    ScriptedDrafter,
    engine_of,
    finish,
    request,
)

from outrider.engine.drafting.draft import Draft
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.engine import Engine
from outrider.engine.models.base import Rows
from outrider.engine.sampling import SamplingParameters
from outrider.engine.sequence import Sequence
from outrider.records.request import FinishReason


class BrokenAt(RememberingModel):
    """A target whose logits are no numbers after some token."""

    def __init__(self, token: int, value: float = float("nan")) -> None:
        super().__init__(num_blocks=50)
        self.token = token
        self.value = value

    def forward(self, rows: Rows) -> torch.Tensor:
        logits = super().forward(rows)
        after = np.array(list(rows.token_ids))[list(rows.wanted)]
        logits[torch.from_numpy(after == self.token), 0] = self.value
        return logits


class Nonsense(ScriptedDrafter):
    """Drafts nonsense for the request "bad", and what is right for the others."""

    def __init__(self, spoil: Callable[[Draft, int], Draft]) -> None:
        super().__init__(lambda each: RememberingModel.answer(each.token_ids.tolist(), 3))
        self.spoil = spoil

    def propose(self, batch: list[Sequence], limit: NDArray[np.int64]) -> Draft:
        draft = super().propose(batch, limit)
        for row, sequence in enumerate(batch):
            if sequence.request_id == "bad" and draft.lengths[row]:
                draft = self.spoil(draft, row)
        return draft


def answers_of(engine: Engine, *sequences: Sequence) -> dict[str, str | None]:
    """Run to the end and say why requests failed, None for those that did not."""
    for sequence in sequences:
        engine.add(sequence)
    failures: dict[str, str | None] = {}
    while engine.busy:
        for update in engine.step():
            if update.finish_reason is not None:
                assert (update.finish_reason is FinishReason.ERROR) == (update.failure is not None)
                failures[update.sequence.request_id] = update.failure
    assert engine.scheduler.cache.pool.free_blocks == engine.scheduler.cache.pool.num_blocks
    return failures


def assert_right(sequence: Sequence) -> None:
    prompt = sequence.token_ids[: sequence.prompt_tokens].tolist()
    output = sequence.output_token_ids.tolist()
    assert output == RememberingModel.answer(prompt, len(output))
    assert sequence.room_tokens == 0


def unknown_token(draft: Draft, row: int) -> Draft:
    draft.tokens[row, 0] = VOCABULARY + 5
    return draft


def negative_token(draft: Draft, row: int) -> Draft:
    draft.tokens[row, 0] = -1
    return draft


def too_many(draft: Draft, row: int) -> Draft:
    draft.lengths[row] = draft.tokens.shape[1] + 1
    return draft


def no_probability(draft: Draft, row: int) -> Draft:
    q = torch.nn.functional.one_hot(torch.from_numpy(draft.tokens).long().clamp(min=0), VOCABULARY)
    q = q.float()
    q[row] = float("nan")
    return Draft(draft.tokens, draft.lengths, q)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (unknown_token, f"proposed token id {VOCABULARY + 5}"),
        (negative_token, "proposed token id -1"),
        (too_many, "says that it proposed"),
        (no_probability, "draft probability of nan"),
    ],
)
def test_a_drafter_that_returns_nonsense_fails_that_request_alone(
    spoil: Callable[[Draft, int], Draft], reason: str
) -> None:
    engine, _ = engine_of(RememberingModel(num_blocks=50), Nonsense(spoil), 3)
    others = [request([place], 9, f"r{place}") for place in range(3)]
    failures = answers_of(engine, others[0], request([7], 9, "bad"), *others[1:])
    assert reason in str(failures.pop("bad"))
    assert set(failures.values()) == {None}
    for sequence in others:
        assert_right(sequence)


@pytest.mark.parametrize("rows", [1, 5])
def test_a_draft_of_the_wrong_shape_fails_the_requests_of_its_step_and_none_after(
    rows: int,
) -> None:
    class Misshapen(ScriptedDrafter):
        def propose(self, batch: list[Sequence], limit: NDArray[np.int64]) -> Draft:
            sound = super().propose(batch, limit)
            return Draft.empty(rows, 3) if len(batch) == 3 else sound

    engine, _ = engine_of(RememberingModel(num_blocks=50), Misshapen(lambda _: []), 3)
    failures = answers_of(engine, *(request([place], 9, f"r{place}") for place in range(3)))
    assert all("the drafter returned" in str(reason) for reason in failures.values())
    assert len(failures) == 3
    after = request([7], 9, "after")
    assert answers_of(engine, after) == {"after": None}
    assert_right(after)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("k", [0, 3])
def test_logits_that_are_no_numbers_fail_the_requests_that_meet_them(k: int, value: float) -> None:
    model = BrokenAt(token=5, value=value)
    drafter = ScriptedDrafter(lambda each: RememberingModel.answer(each.token_ids.tolist(), 3))
    engine, _ = engine_of(model, drafter, k)
    sequences = [request([place, 9], 6, f"r{place}") for place in range(12)]
    failures = answers_of(engine, *sequences)
    met = [5 in RememberingModel.answer([place, 9], 5) for place in range(12)]
    assert [failures[f"r{place}"] is not None for place in range(12)] == met
    assert any(met)
    assert not all(met)
    for sequence, failed in zip(sequences, met, strict=True):
        if failed:
            assert "not finite numbers" in str(failures[sequence.request_id])
            # What came before it is right and was delivered.
            output = sequence.output_token_ids.tolist()
            assert output == RememberingModel.answer([sequence.token_ids[0], 9], len(output))
        else:
            assert_right(sequence)


def test_what_follows_a_rejected_token_may_be_broken() -> None:
    # Token 5 is drafted always and never right here.
    prompt = next([p, 9] for p in range(20) if 5 not in RememberingModel.answer([p, 9], 6))
    engine, _ = engine_of(BrokenAt(token=5), ScriptedDrafter(lambda _: [5, 5]), 2)
    sequence = request(prompt, 6)
    assert answers_of(engine, sequence) == {"r": None}
    assert_right(sequence)


def test_a_request_that_forbids_every_token_fails_with_that_reason() -> None:
    engine, _ = engine_of(RememberingModel(num_blocks=9), NoDrafter(), 0)
    nothing = SamplingParameters(allowed_token_ids=(3,), bad_words_token_ids=((3,),), max_tokens=4)
    other = request([1], 4, "other")
    failures = answers_of(engine, request([1], 4, "none", parameters=nothing), other)
    assert failures == {"none": "every token is forbidden", "other": None}
    assert_right(other)


def test_a_failed_request_frees_its_place_for_the_next() -> None:
    engine, _ = engine_of(BrokenAt(token=5), NoDrafter(), 0)
    engine.add(request([5], 3, "first"))
    finish(engine)
    again = request([4, 9], 1, "first")
    engine.add(again)
    assert finish(engine) == {"first": FinishReason.LENGTH}
