from collections import Counter

from outrider.bench.schedule import Block, measured_blocks
from outrider.records.arm import BASELINE, Arm
from outrider.records.prompt import PromptRecord

ARMS = (BASELINE, *(Arm(f"ngram K={k}", "ngram", k, 2, 5, "recent") for k in (1, 2, 4, 8)))
PROMPTS = tuple(PromptRecord(f"p{i}", "chat", (i,), 8, "[]") for i in range(24))
REPEATS = 3


def blocks(seed: int = 0) -> list[Block]:
    return list(measured_blocks(ARMS, PROMPTS, repeats=REPEATS, seed=seed))


def test_every_arm_answers_every_prompt_once_in_every_repeat() -> None:
    answered = Counter(
        (block.repeat, block.prompt.prompt_id, arm.name) for block in blocks() for arm in block.arms
    )
    assert len(answered) == REPEATS * len(PROMPTS) * len(ARMS)
    assert set(answered.values()) == {1}


def test_a_repeat_is_over_before_the_next_begins() -> None:
    repeats = [block.repeat for block in blocks()]
    assert repeats == sorted(repeats)


def test_the_same_seed_gives_the_same_order() -> None:
    assert blocks(7) == blocks(7)


def test_another_seed_gives_another_order() -> None:
    assert blocks(7) != blocks(8)


def test_all_arms_answer_a_prompt_before_the_next_one() -> None:
    assert all(sorted(block.arms, key=ARMS.index) == list(ARMS) for block in blocks())


def test_the_order_of_arms_changes_from_block_to_block() -> None:
    orders = [block.arms for block in blocks()]
    # Of 120 orders, 72 draws miss two thirds at most.
    assert len(set(orders)) > len(orders) // 2


def test_no_arm_is_always_in_the_same_place() -> None:
    for place in range(len(ARMS)):
        assert {block.arms[place] for block in blocks()} == set(ARMS)


def test_the_order_of_prompts_changes_from_repeat_to_repeat() -> None:
    order = [block.prompt.prompt_id for block in blocks()]
    count = len(PROMPTS)
    assert len({tuple(order[i * count : (i + 1) * count]) for i in range(REPEATS)}) == REPEATS
