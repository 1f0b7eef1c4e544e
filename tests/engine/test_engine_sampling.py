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
    following,
    request,
)

from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.models.base import Rows
from outrider.engine.sampling import SamplingParameters
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


def answers(drafter: Drafter, k: int) -> dict[str, list[int]]:
    """All kinds of requests in one batch."""
    engine, _ = engine_of(SoftModel(num_blocks=50), drafter, k)
    sequences = [
        request([place, 8, place], 40, name, stop_ids=[0], parameters=parameters)
        for place, (name, parameters) in enumerate(ASKED.items())
    ]
    for sequence in sequences:
        engine.add(sequence)
    finish(engine)
    return {each.request_id: each.output_token_ids.tolist() for each in sequences}


PLAIN = answers(NoDrafter(), 0)


def test_the_requests_differ() -> None:
    assert len({tuple(answer) for answer in PLAIN.values()}) == len(ASKED)


@pytest.mark.parametrize("k", [1, 4, 8])
@pytest.mark.parametrize("share_right", [0.0, 0.7, 1.0])
def test_every_answer_is_that_of_plain_decoding_seed_by_seed(k: int, share_right: float) -> None:
    random = np.random.default_rng(k)

    def partly_right(sequence: Sequence) -> list[int]:
        done = len(sequence.output_token_ids)
        right = PLAIN[sequence.request_id][done : done + 8]
        return [t if random.random() < share_right else int(random.integers(24)) for t in right]

    assert answers(ScriptedDrafter(partly_right), k) == PLAIN


def advance(sequence: Sequence, drafter: Drafter, k: int, *, step_tokens: int = 99) -> list[Update]:
    del step_tokens
    engine, _ = engine_of(SoftModel(num_blocks=50), drafter, k)
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
        sequence = request([0, 8, 0], 20, stop_ids=[0], parameters=parameters)
        updates = advance(sequence, drafter, k)
        assert all(update.logprobs is not None for update in updates)
        chosen = [each for u in updates if u.logprobs is not None for each in u.logprobs.chosen]
        ranks = [each for u in updates if u.logprobs is not None for each in u.logprobs.ranks]
        assert len(chosen) == len(sequence.output_token_ids)
        assert set(ranks) == {1}  # greedy
        told.append(chosen)
    assert told[0] == pytest.approx(told[1])


@pytest.mark.parametrize("budget", [4, 200])
def test_prompt_log_probabilities_cover_all_of_the_prompt_but_its_first_token(budget: int) -> None:
    from outrider.engine.scheduling.limits import Limits  # noqa: PLC0415

    prompt = [*range(20)] * 5
    sequence = request(prompt, 2, parameters=SamplingParameters(prompt_logprobs=0))
    engine, _ = engine_of(SoftModel(num_blocks=50), NoDrafter(), 0, limits=Limits(4, budget))
    engine.add(sequence)
    finish(engine)
    told = np.concatenate([each.chosen for each in sequence.prompt_logprobs])
    model = SoftModel(num_blocks=9)
    rows = Rows(prompt, range(100), [0] * 100, [range(2)], range(100))
    expected = model.forward(rows).log_softmax(dim=-1)[range(99), prompt[1:]]
    np.testing.assert_allclose(told, expected.numpy(), rtol=1e-6)


def test_a_stop_within_an_accepted_run_drops_what_follows_and_says_what_was_delivered() -> None:
    prompt = [4, 8, 4]
    history, answer = list(prompt), []
    for _ in range(9):
        answer.append(following(history))
        history.append(answer[-1])
    stop = answer[4]
    assert stop not in answer[:4]
    engine, recorder = engine_of(
        RememberingModel(num_blocks=9),
        ScriptedDrafter(lambda each: RememberingModel.answer(each.token_ids.tolist(), 8)),
        8,
    )
    parameters = SamplingParameters(stop_token_ids=(stop,))
    sequence = request(prompt, 30, parameters=parameters)
    engine.add(sequence)
    updates = []
    while engine.busy:
        updates += engine.step()
    assert sequence.output_token_ids.tolist() == answer[:5]
    assert updates[-1].stopped_by == stop
    (step,) = recorder.take(sequence).steps
    assert (step.accepted, step.emitted, step.accepted_emitted) == (8, 4, 4)
