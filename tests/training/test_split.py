"""What is held out, and what the target is asked for."""

from outrider.records.prompt import PromptRecord
from outrider.training.settings import AnswerSettings
from outrider.training.split import held_out_prompts, wanted_answers


def prompts(**counts: int) -> list[PromptRecord]:
    return [
        PromptRecord(f"{kind}{number}", kind, (1, 2), 9, "[]")
        for kind, count in counts.items()
        for number in range(count)
    ]


def test_a_tenth_of_each_kind_is_held_out_rounded_up() -> None:
    held = held_out_prompts(prompts(a=20, b=11, c=2, d=1), 10, seed=0)
    assert {kind: sum(each[0] == kind for each in held) for kind in "abcd"} == {
        "a": 2,
        "b": 2,
        "c": 1,
        "d": 0,
    }


def test_the_choice_follows_the_seed() -> None:
    asked = prompts(a=200)
    assert held_out_prompts(asked, 10, 0) == held_out_prompts(asked, 10, 0)
    assert held_out_prompts(asked, 10, 0) != held_out_prompts(asked, 10, 1)


def test_a_prompt_to_train_on_is_answered_greedily_and_at_random_with_seeds_of_their_own() -> None:
    settings = AnswerSettings(samples=2, temperature=0.7, seed=5, top_tokens=3)
    asked = [*wanted_answers(prompts(a=1), frozenset(), settings)]
    assert [(e.answer_id, e.sampling.temperature, e.sampling.seed) for e in asked] == [
        ("a0#0", 0, None),
        ("a0#1", 0.7, 6),
        ("a0#2", 0.7, 7),
    ]
    assert all(each.sampling.logprobs == 3 for each in asked)


def test_a_prompt_that_is_held_out_is_answered_once_and_greedily() -> None:
    [only] = wanted_answers(prompts(a=1), frozenset({"a0"}), AnswerSettings())
    assert only.held_out
    assert only.sampling.greedy
    assert only.sampling.logprobs is None
