import math
from collections.abc import Callable

import pytest

from outrider.bench.answering import Answerer
from outrider.engine.models.base import TargetModel
from outrider.engine.sampling import SamplingParameters
from outrider.errors import RequestFailed
from outrider.records.arm import Arm
from outrider.records.prompt import PromptRecord
from outrider.records.request import FinishReason, Phase, RequestRecord

PlainAnswer = Callable[..., tuple[int, ...]]


def ask(answerer: Answerer, arm: Arm, prompt: PromptRecord, repeat: int = 0) -> RequestRecord:
    return answerer.answer(
        arm, prompt, repeat=repeat, phase=Phase.MEASURED, sampling=SamplingParameters(0.0)
    )


def test_every_arm_gives_the_answer_of_the_target(
    answerer: Answerer,
    arms: tuple[Arm, ...],
    prompts: tuple[PromptRecord, ...],
    plain_answer: PlainAnswer,
) -> None:
    for prompt in prompts:
        for arm in arms:
            assert ask(answerer, arm, prompt).output_token_ids == plain_answer(prompt)


def test_steps_account_for_every_token_but_the_first(
    answerer: Answerer, arms: tuple[Arm, ...], prompts: tuple[PromptRecord, ...]
) -> None:
    for prompt in prompts:
        for arm in arms:
            request = ask(answerer, arm, prompt)
            assert request.decode_tokens == len(request.output_token_ids) - 1
            for step in request.steps:
                assert 0 <= step.accepted <= step.drafted <= arm.num_speculative_tokens
                assert step.emitted == step.accepted + 1


def test_drafts_are_partly_accepted_here(
    answerer: Answerer, arms: tuple[Arm, ...], prompts: tuple[PromptRecord, ...]
) -> None:
    steps = [step for prompt in prompts for step in ask(answerer, arms[-1], prompt).steps]
    assert any(step.drafted == 0 for step in steps)
    assert any(step.accepted < step.drafted for step in steps)
    assert any(0 < step.accepted == step.drafted for step in steps)


def test_a_request_says_whose_it_is(
    answerer: Answerer, arms: tuple[Arm, ...], prompts: tuple[PromptRecord, ...]
) -> None:
    request = answerer.answer(
        arms[2],
        prompts[1],
        repeat=3,
        phase=Phase.WARMUP,
        sampling=SamplingParameters(0.0),
    )
    assert (request.arm, request.prompt_id, request.repeat) == ("ngram K=4", "second", 3)
    assert request.phase is Phase.WARMUP
    assert request.prompt_tokens == 5


def test_an_answer_ends_with_its_stop_token(
    toy: TargetModel,
    arms: tuple[Arm, ...],
    prompts: tuple[PromptRecord, ...],
    ticks: Callable[[], float],
    plain_answer: PlainAnswer,
) -> None:
    for stop in range(5):
        stop_ids = frozenset({stop})
        answerer = Answerer(toy, arms, stop_ids=stop_ids, clock=ticks)
        for prompt in prompts:
            expected = plain_answer(prompt, stop_ids)
            for arm in arms:
                request = ask(answerer, arm, prompt)
                assert request.output_token_ids == expected
                stopped = expected[-1] == stop
                assert request.finish_reason == (
                    FinishReason.STOP if stopped else FinishReason.LENGTH
                )
                assert request.decode_tokens == len(expected) - 1


def test_an_answer_of_one_token_has_no_step(
    answerer: Answerer, arms: tuple[Arm, ...], plain_answer: PlainAnswer
) -> None:
    prompt = PromptRecord("short", "chat", (1, 2), 1, "[]")
    for arm in arms:
        request = ask(answerer, arm, prompt)
        assert request.output_token_ids == plain_answer(prompt)
        assert request.steps == ()
        assert request.finish_reason is FinishReason.LENGTH


def test_a_target_that_is_broken_is_told_with_the_prompt_and_the_arm(
    answerer: Answerer,
    toy: TargetModel,
    arms: tuple[Arm, ...],
    prompts: tuple[PromptRecord, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sound = toy.forward
    monkeypatch.setattr(toy, "forward", lambda rows: sound(rows).fill_(math.nan))
    with pytest.raises(RequestFailed, match=r"prompt 'first' of arm .* fails: the target's logits"):
        ask(answerer, arms[0], prompts[0])


def test_times_are_differences_of_the_given_clock(
    answerer: Answerer, arms: tuple[Arm, ...], prompts: tuple[PromptRecord, ...]
) -> None:
    request = ask(answerer, arms[1], prompts[0])
    assert request.prefill_s == 3.0
    assert {(step.draft_s, step.verify_s, step.step_s) for step in request.steps} == {
        (1.0, 1.0, 3.0)
    }
    assert request.decode_s == 3.0 * len(request.steps)


def test_a_request_repeated_starts_from_scratch(
    answerer: Answerer, arms: tuple[Arm, ...], prompts: tuple[PromptRecord, ...]
) -> None:
    for arm in arms:
        first = ask(answerer, arm, prompts[0])
        ask(answerer, arm, prompts[1])
        assert ask(answerer, arm, prompts[0]) == first


@pytest.mark.parametrize("token_ids", [(1, 2), (4, 0, 3, 3), (0, 1, 2, 3, 4, 0, 1, 2)])
def test_the_best_two_are_the_targets_next_tokens(
    answerer: Answerer, token_ids: tuple[int, ...], plain_answer: PlainAnswer
) -> None:
    [best] = plain_answer(PromptRecord("any", "chat", token_ids, 1, "[]"))
    assert answerer.best_two(token_ids) == ((best, (best + 1) % 5), 1.0)
