from collections.abc import Sequence

import pytest

from outrider.bench.audit import first_divergence
from outrider.records.divergence import Divergence
from outrider.records.prompt import PromptRecord
from outrider.records.request import FinishReason, Phase, RequestRecord

PROMPT = PromptRecord("p", "chat", (100, 101), 16, "[]")
GAP = 0.25


def answered(arm: str, *output: int) -> RequestRecord:
    return RequestRecord(
        arm, "p", 2, Phase.MEASURED, 2, output, FinishReason.STOP, prefill_s=0.1, steps=()
    )


class BestTwo:
    """The target prefers 7, then 8; remembers what it was asked about."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, ...]] = []

    def __call__(self, token_ids: Sequence[int]) -> tuple[tuple[int, int], float]:
        self.asked.append(tuple(token_ids))
        return (7, 8), GAP


def divergence(
    plain: Sequence[int], other: Sequence[int], tolerance: float = GAP
) -> Divergence | None:
    return first_divergence(
        answered("none", *plain),
        answered("ngram", *other),
        PROMPT,
        best_two=BestTwo(),
        tolerance=tolerance,
    )


def test_equal_outputs_do_not_diverge_and_cost_no_forward_pass() -> None:
    best_two = BestTwo()
    found = first_divergence(
        answered("none", 1, 2, 3),
        answered("ngram", 1, 2, 3),
        PROMPT,
        best_two=best_two,
        tolerance=1.0,
    )
    assert found is None
    assert best_two.asked == []


def test_the_first_difference_is_told_and_where_it_is() -> None:
    found = divergence((1, 7, 3, 4), (1, 8, 9, 9))
    assert found == Divergence(
        arm="ngram",
        prompt_id="p",
        repeat=2,
        position=1,
        expected_token_id=7,
        actual_token_id=8,
        top2_gap=GAP,
        kind="near-tie",
    )


def test_the_target_is_asked_after_the_prompt_and_what_both_agree_on() -> None:
    best_two = BestTwo()
    first_divergence(
        answered("none", 1, 2, 7),
        answered("ngram", 1, 2, 8, 5),
        PROMPT,
        best_two=best_two,
        tolerance=1.0,
    )
    assert best_two.asked == [(100, 101, 1, 2)]


@pytest.mark.parametrize(("plain", "other"), [((7,), (8,)), ((8,), (7,))])
def test_either_of_the_best_two_may_be_the_baselines(
    plain: tuple[int, ...], other: tuple[int, ...]
) -> None:
    found = divergence(plain, other)
    assert found is not None
    assert found.kind == "near-tie"


def test_a_gap_beyond_the_tolerance_is_real() -> None:
    found = divergence((7,), (8,), tolerance=0.99 * GAP)
    assert found is not None
    assert found.kind == "real"


@pytest.mark.parametrize(("plain", "other"), [((7,), (9,)), ((9,), (7,)), ((9,), (3,))])
def test_a_token_that_is_not_among_the_best_two_is_real(
    plain: tuple[int, ...], other: tuple[int, ...]
) -> None:
    found = divergence(plain, other, tolerance=100.0)
    assert found is not None
    assert found.kind == "real"


@pytest.mark.parametrize(
    ("plain", "other", "expected", "actual"),
    [((1, 7), (1,), 7, None), ((1,), (1, 7), None, 7), ((1,), (), 1, None)],
)
def test_an_output_that_ends_early_is_real(
    plain: tuple[int, ...], other: tuple[int, ...], expected: int | None, actual: int | None
) -> None:
    found = divergence(plain, other, tolerance=100.0)
    assert found is not None
    assert (found.expected_token_id, found.actual_token_id) == (expected, actual)
    assert found.position == min(len(plain), len(other))
    assert found.kind == "real"
