"""Everything that a request may ask for, the same with and without speculation."""

import numpy as np
import pytest
import torch
from tests.engine.loops import (
    VOCABULARY,
    RememberingModel,
    ScriptedDrafter,
    engine_of,
    finish,
    request,
)

from outrider.engine.drafting.none import NoDrafter
from outrider.engine.engine import Engine
from outrider.engine.models.base import Rows, blocks_for
from outrider.engine.sampling import SamplingParameters
from outrider.engine.scheduling.limits import Limits
from outrider.engine.sequence import Sequence
from outrider.engine.update import Update


class SoftModel(RememberingModel):
    """A target whose logits, not only its choice, depend on all that came before."""

    def forward(self, rows: Rows) -> torch.Tensor:
        chosen = super().forward(rows).argmax(dim=-1)
        places = torch.arange(VOCABULARY)
        return torch.cos(chosen.unsqueeze(-1) * 1.7 + places * (1 + chosen.unsqueeze(-1) % 5)) * 3


ASKED = {
    "greedy": SamplingParameters(),
    "temperature": SamplingParameters(0.9, 3),
    "top-k and top-p": SamplingParameters(1.3, 4, top_k=9, top_p=0.8),
    "min-p": SamplingParameters(1.0, 5, min_p=0.1),
    "penalties": SamplingParameters(
        repetition_penalty=1.3, presence_penalty=0.4, frequency_penalty=0.3
    ),
    "penalties at a temperature": SamplingParameters(
        0.7, 6, repetition_penalty=1.2, frequency_penalty=-0.5
    ),
    "bias": SamplingParameters(logit_bias={3: 2.0, 7: -5.0}),
    "bad words": SamplingParameters(bad_words_token_ids=((2,), (5, 6), (1, 4, 9))),
    "allowed": SamplingParameters(0.8, 7, allowed_token_ids=(1, 2, 3, 11)),
    "late stop": SamplingParameters(stop_token_ids=(1, 2, 3, 4), min_tokens=12),
}


def prompt_of(place: int) -> list[int]:
    """57 tokens, so that most answers go on into a second block."""
    return [place, 8, place] * 19


def answers(engine: Engine) -> dict[str, list[int]]:
    """All kinds of requests in one batch."""
    sequences = [
        request(prompt_of(place), 40, name, stop_ids=[0], parameters=parameters)
        for place, (name, parameters) in enumerate(ASKED.items())
    ]
    for sequence in sequences:
        engine.add(sequence)
    finish(engine)
    return {each.request_id: each.output_token_ids.tolist() for each in sequences}


PLAIN = answers(engine_of(SoftModel(num_blocks=50), NoDrafter(), 0)[0])


def test_the_requests_differ() -> None:
    assert len({tuple(answer) for answer in PLAIN.values()}) == len(ASKED)


def partly_right(share_right: float, seed: int) -> ScriptedDrafter:
    random = np.random.default_rng(seed)

    def draft(sequence: Sequence) -> list[int]:
        done = len(sequence.output_token_ids)
        right = PLAIN[sequence.request_id][done : done + 8]
        return [t if random.random() < share_right else int(random.integers(24)) for t in right]

    return ScriptedDrafter(draft)


@pytest.mark.parametrize("k", [1, 4, 8])
@pytest.mark.parametrize("share_right", [0.0, 0.7, 1.0])
def test_every_answer_is_that_of_plain_decoding_seed_by_seed(k: int, share_right: float) -> None:
    drafter = partly_right(share_right, seed=k)
    engine, _ = engine_of(SoftModel(num_blocks=50), drafter, k)
    assert answers(engine) == PLAIN


@pytest.mark.parametrize("prefix_caching", [False, True])
def test_so_it_is_where_requests_give_way_and_are_computed_again(prefix_caching: bool) -> None:
    drafter = partly_right(0.7, seed=1)
    model = SoftModel(num_blocks=5)
    engine, _ = engine_of(model, drafter, 4, prefix_caching=prefix_caching)
    assert answers(engine) == PLAIN
    assert engine.scheduler.preemptions > 1


def advance(engine: Engine, sequence: Sequence) -> list[Update]:
    """Everything that is told of a request until it ends."""
    engine.add(sequence)
    updates = []
    while engine.busy:
        updates += engine.step()
    return updates


def test_log_probabilities_are_those_of_every_emitted_token_also_of_accepted_ones() -> None:
    told = []
    for drafter, k in (
        (NoDrafter(), 0),
        (ScriptedDrafter(lambda each: PLAIN["greedy"][len(each.output_token_ids) :][:3]), 3),
    ):
        parameters = SamplingParameters(logprobs=2)
        sequence = request(prompt_of(0), 20, stop_ids=[0], parameters=parameters)
        engine, _ = engine_of(SoftModel(num_blocks=50), drafter, k)
        updates = advance(engine, sequence)
        assert all(update.logprobs is not None for update in updates)
        chosen = [each for u in updates if u.logprobs is not None for each in u.logprobs.chosen]
        ranks = [each for u in updates if u.logprobs is not None for each in u.logprobs.ranks]
        assert len(chosen) == len(sequence.output_token_ids)
        assert set(ranks) == {1}  # greedy
        told.append(chosen)
    assert told[0] == pytest.approx(told[1])


PROMPT = [*range(20)] * 5


def assert_tells_the_prompt(sequence: Sequence) -> None:
    told = np.concatenate([each.chosen for each in sequence.prompt_logprobs])
    rows = Rows(PROMPT, range(100), [0] * 100, [range(2)], range(100))
    logits = SoftModel(num_blocks=2).forward(rows)
    expected = logits.log_softmax(dim=-1)[range(99), PROMPT[1:]]
    np.testing.assert_allclose(told, expected.numpy(), rtol=1e-6)
    assert sequence.cached_tokens == 0


@pytest.mark.parametrize("budget", [4, 200])
def test_prompt_log_probabilities_cover_all_of_the_prompt_but_its_first_token(budget: int) -> None:
    sequence = request(PROMPT, 2, parameters=SamplingParameters(prompt_logprobs=0))
    engine, _ = engine_of(SoftModel(num_blocks=50), NoDrafter(), 0, limits=Limits(4, budget))
    advance(engine, sequence)
    assert_tells_the_prompt(sequence)


@pytest.mark.parametrize("budget", [12, 200])
def test_they_are_as_right_beside_requests_whose_drafts_are_verified(budget: int) -> None:
    engine, recorder = engine_of(
        SoftModel(num_blocks=50), partly_right(0.7, seed=2), 3, limits=Limits(4, budget)
    )
    others = [request(prompt_of(0), 40, "greedy"), request(prompt_of(6), 40, "bias")]
    for other in others:
        engine.add(other)
    while not all(len(other.output_token_ids) for other in others):
        engine.step()
    sequence = request(PROMPT, 2, "min-p", parameters=SamplingParameters(prompt_logprobs=0))
    advance(engine, sequence)
    assert_tells_the_prompt(sequence)
    assert all(sum(step.drafted for step in recorder.take(other).steps) for other in others)


@pytest.mark.parametrize("tokens_before", [1, 50])
def test_they_are_told_once_though_a_prompt_is_preempted_and_computed_in_one_piece_later(
    tokens_before: int,
) -> None:
    first = request([1] * (110 - tokens_before), 4, "first")
    model = SoftModel(num_blocks=blocks_for(first.most_tokens) + 1)
    engine, _ = engine_of(model, NoDrafter(), 0, limits=Limits(2, 110), prefix_caching=True)
    engine.add(first)
    sequence = request(PROMPT, 2, parameters=SamplingParameters(prompt_logprobs=0))
    advance(engine, sequence)
    assert engine.scheduler.preemptions == 1
    assert_tells_the_prompt(sequence)


def test_a_stop_within_an_accepted_run_drops_what_follows_and_says_what_was_delivered() -> None:
    prompt = [4, 8, 4]
    answer = RememberingModel.answer(prompt, 9)
    stop = answer[4]
    assert stop not in answer[:4]
    engine, recorder = engine_of(
        RememberingModel(num_blocks=9),
        ScriptedDrafter(lambda each: RememberingModel.answer(each.token_ids.tolist(), 8)),
        8,
    )
    parameters = SamplingParameters(stop_token_ids=(stop,))
    sequence = request(prompt, 30, parameters=parameters)
    updates = advance(engine, sequence)
    assert sequence.output_token_ids.tolist() == answer[:5]
    assert updates[-1].stopped_by == stop
    (step,) = recorder.take(sequence).steps
    assert (step.accepted, step.emitted, step.accepted_emitted) == (8, 4, 4)
