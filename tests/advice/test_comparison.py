from collections.abc import Callable

import numpy as np
import pytest

from outrider.advice.comparison import OVERALL, Comparison, compare
from outrider.records.arm import BASELINE, Arm
from outrider.records.request import Phase, RequestRecord

MakeRequest = Callable[..., RequestRecord]

K1, K2 = Arm("k1", "ngram", 1), Arm("k2", "ngram", 2)
KINDS = {"p1": "chat", "p2": "copy", "p3": "chat"}


@pytest.fixture
def requests(make_request: MakeRequest) -> list[RequestRecord]:
    """Plain steps take 1 s; K = 1 yields 2 tokens in 1.25 s, K = 2 yields 3 tokens in 1.5 s."""
    return [
        make_request(arm, prompt, steps)
        for prompt in KINDS
        for arm, steps in (
            ("none", [(0, 0, 1.0)] * 6),
            ("k1", [(1, 1, 1.25)] * 3),
            ("k2", [(2, 2, 1.5)] * 2),
        )
    ]


def compared(
    requests: list[RequestRecord], arms: tuple[Arm, ...] = (BASELINE, K1, K2)
) -> Comparison:
    return compare(requests, arms, KINDS, rng=np.random.default_rng(1))


def test_segments_are_all_prompts_and_then_each_kind(requests: list[RequestRecord]) -> None:
    segments = compared(requests).segments

    assert [(s.segment, s.prompts) for s in segments] == [(OVERALL, 3), ("chat", 2), ("copy", 1)]
    assert [[arm.requests for arm in s.summaries] for s in segments] == [[3] * 3, [2] * 3, [1] * 3]


def test_a_single_kind_of_prompt_is_not_shown_twice(requests: list[RequestRecord]) -> None:
    kinds = dict.fromkeys(KINDS, "all")

    comparison = compare(requests, (BASELINE, K1), kinds, rng=np.random.default_rng(1))

    assert [segment.segment for segment in comparison.segments] == [OVERALL]


def test_every_speculating_arm_is_paired_with_no_speculation_and_with_the_best(
    requests: list[RequestRecord],
) -> None:
    overall = compared(requests).segments[0]

    assert [(p.arm, p.against, p.pairs) for p in overall.against_baseline] == [
        ("k1", "none", 3),
        ("k2", "none", 3),
    ]
    assert [p.speed_up.value for p in overall.against_baseline] == pytest.approx([1.6, 2.0])
    assert overall.best == "k2"
    (slower,) = overall.against_best
    assert (slower.arm, slower.against) == ("k1", "k2")
    assert slower.speed_up.value == pytest.approx(0.8)


def test_the_best_arm_gains_for_certain_before_it_gains_much(make_request: MakeRequest) -> None:
    # K = 2 is faster in all, but on one prompt it loses, so its interval reaches below 1.
    requests = []
    for prompt, k2_step_s in (("p1", 0.1), ("p2", 2.0), ("p3", 0.1)):
        requests += [
            make_request("none", prompt, [(0, 0, 1.0)] * 2),
            make_request("k1", prompt, [(1, 1, 1.8)]),
            make_request("k2", prompt, [(2, 1, k2_step_s)]),
        ]

    overall = compared(requests).segments[0]

    k1, k2 = overall.against_baseline
    assert k1.speed_up.value is not None
    assert k2.speed_up.value is not None
    assert k1.speed_up.value < k2.speed_up.value
    assert (k1.pays, k2.pays) == (True, False)
    assert overall.best == "k1"


def test_an_arm_that_changed_the_output_is_never_the_best(requests: list[RequestRecord]) -> None:
    comparison = compare(
        requests, (BASELINE, K1, K2), KINDS, wrong_arms={"k2"}, rng=np.random.default_rng(1)
    )

    assert comparison.wrong_arms == ("k2",)
    assert [segment.best for segment in comparison.segments] == ["k1"] * 3


def test_warm_up_is_in_no_statistic(
    requests: list[RequestRecord], make_request: MakeRequest
) -> None:
    warm_up = make_request("k1", "p1", [(1, 0, 99.0)], phase=Phase.WARMUP)

    assert compared([warm_up, *requests]) == compared(requests)


def test_the_order_of_the_requests_does_not_matter(requests: list[RequestRecord]) -> None:
    assert compared(requests[::-1]) == compared(requests)


def test_without_a_baseline_there_is_no_speed_up_and_no_best(
    requests: list[RequestRecord],
) -> None:
    overall = compared(requests, (K1, K2)).segments[0]

    assert (overall.against_baseline, overall.best, overall.against_best) == ((), None, ())
    assert overall.summaries[0].tokens_per_s.value == pytest.approx(1.6)


def test_an_interrupted_run_compares_what_is_there(requests: list[RequestRecord]) -> None:
    unfinished = [r for r in requests if (r.arm, r.prompt_id) not in {("k2", "p1"), ("k2", "p2")}]

    overall, chat, copy = compared(unfinished).segments

    assert [p.pairs for p in overall.against_baseline] == [3, 1]
    assert [p.pairs for p in overall.against_best] == [1]
    assert [p.pairs for p in chat.against_baseline] == [2, 1]
    assert copy.against_baseline[1].speed_up.reason == "no request was finished by both arms"
    assert copy.best == "k1"
