"""The losslessness audit: where an arm's output leaves that of no speculation, and why."""

from collections.abc import Callable, Sequence
from itertools import zip_longest

from outrider.records.divergence import Divergence
from outrider.records.prompt import PromptRecord
from outrider.records.request import RequestRecord

BestTwo = Callable[[Sequence[int]], tuple[tuple[int, int], float]]
"""The two best tokens after some token ids, and the gap between their logits."""


def first_divergence(
    baseline: RequestRecord,
    other: RequestRecord,
    prompt: PromptRecord,
    *,
    best_two: BestTwo,
    tolerance: float,
) -> Divergence | None:
    """The first difference between two greedy outputs of one prompt; None where they are equal.

    It is a near-tie when the two tokens are the target's best two and their logits lie within
    `tolerance`, the most that rounding moves a logit between batch shapes. All else is real.
    """
    pairs = enumerate(zip_longest(baseline.output_token_ids, other.output_token_ids))
    different = next(((i, pair) for i, pair in pairs if pair[0] != pair[1]), None)
    if different is None:
        return None
    position, (expected, actual) = different
    history = (*prompt.token_ids, *baseline.output_token_ids[:position])
    best, gap = best_two(history)
    near_tie = {expected, actual} == set(best) and gap <= tolerance
    return Divergence(
        arm=other.arm,
        prompt_id=other.prompt_id,
        repeat=other.repeat,
        position=position,
        expected_token_id=expected,
        actual_token_id=actual,
        top2_gap=gap,
        kind="near-tie" if near_tie else "real",
    )
