from collections.abc import Callable

import numpy as np
import pytest

from outrider.acceptance.estimate import Estimate
from outrider.acceptance.intervals import Interval
from outrider.advice.arm_summary import NO_REQUEST, NO_SPECULATION, ArmSummary, summarise_arm
from outrider.records.arm import BASELINE, Arm
from outrider.records.request import RequestRecord

MakeRequest = Callable[..., RequestRecord]
K2 = Arm("k2", "ngram", 2)


@pytest.fixture
def two_prompts(make_request: MakeRequest) -> list[RequestRecord]:
    return [
        make_request("k2", "p1", [(2, 2, 3.0), (0, 0, 2.0)]),
        make_request("k2", "p2", [(1, 1, 3.0)]),
        make_request("k2", "p2", [(2, 0, 4.0)], repeat=1),
    ]


def summarise(arm: Arm, requests: list[RequestRecord]) -> ArmSummary:
    return summarise_arm(arm, requests, rng=np.random.default_rng(0))


def test_counts_are_those_of_the_steps(two_prompts: list[RequestRecord]) -> None:
    summary = summarise(K2, two_prompts)

    assert (summary.requests, summary.prompts) == (3, 2)
    assert (summary.decode_steps, summary.verification_steps) == (4, 3)
    assert (summary.drafted, summary.accepted) == (5, 3)
    assert summary.histogram == (1, 1, 1)
    assert (summary.decode_tokens, summary.output_tokens) == (7, 10)


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("mean_acceptance_length", 2.0),
        ("draft_acceptance_rate", 3 / 5),
        ("immediate_failure_rate", 1 / 3),
        ("full_draft_rate", 1 / 3),
        ("coverage", 3 / 4),
        ("tokens_per_decode_step", 7 / 4),
        ("tokens_per_s", 7 / 12),
        ("time_per_output_token_ms", 12000 / 7),
        ("step_ms", 3000.0),
        ("draft_ms", 375.0),
        ("verify_ms", 1500.0),
    ],
)
def test_figures_are_pooled_over_steps(
    two_prompts: list[RequestRecord], figure: str, value: float
) -> None:
    assert getattr(summarise(K2, two_prompts), figure).value == pytest.approx(value, rel=1e-12)


def test_intervals_resample_prompts_with_all_their_repeats(
    two_prompts: list[RequestRecord],
) -> None:
    # Two clusters can be drawn in three ways, of which the extremes bound the interval:
    # p1 alone has A/D = 2/2, p2 alone, with both repeats, 1/3.
    interval = summarise(K2, two_prompts).draft_acceptance_rate.interval

    assert interval is not None
    assert interval.clusters == 2
    assert (interval.low, interval.high) == pytest.approx((1 / 3, 1.0))


def test_slowest_and_fastest_prompt_bound_the_speed(two_prompts: list[RequestRecord]) -> None:
    summary = summarise(K2, two_prompts)

    assert summary.slowest_prompt_tokens_per_s == pytest.approx(3 / 7)
    assert summary.fastest_prompt_tokens_per_s == pytest.approx(4 / 5)


def test_a_short_draft_is_censored_in_one_survival_and_a_failure_in_the_other(
    two_prompts: list[RequestRecord],
) -> None:
    first, second = summarise(K2, two_prompts).positions

    assert (first.at_risk, first.accepted) == (3, 2)
    assert first.survival == first.naive_tail_ratio == pytest.approx(2 / 3)
    # The step that drafted one token and had it accepted says nothing about the second.
    assert (second.at_risk, second.accepted) == (1, 1)
    assert second.survival == pytest.approx(2 / 3)
    assert second.naive_tail_ratio == pytest.approx(1 / 3)


def test_an_arm_that_found_no_draft_has_a_coverage_of_zero_and_no_acceptance(
    make_request: MakeRequest,
) -> None:
    requests = [make_request("k2", prompt, [(0, 0, 1.0)] * 2) for prompt in ("p1", "p2")]

    summary = summarise(K2, requests)

    assert (summary.verification_steps, summary.drafted, summary.histogram) == (0, 0, (0, 0, 0))
    assert summary.coverage.value == 0
    assert summary.tokens_per_decode_step.value == 1
    for figure in (summary.mean_acceptance_length, summary.draft_acceptance_rate):
        assert figure == Estimate.missing("no step had a draft (S = 0)")
    assert [position.survival for position in summary.positions] == [None, None]
    assert [position.naive_tail_ratio for position in summary.positions] == [None, None]


def test_no_speculation_has_speed_and_no_acceptance(make_request: MakeRequest) -> None:
    requests = [make_request("none", prompt, [(0, 0, 0.5)] * 2) for prompt in ("p1", "p2")]

    summary = summarise(BASELINE, requests)

    assert summary.tokens_per_s.value == 2
    assert summary.histogram is None
    assert summary.positions == ()
    for figure in (summary.coverage, summary.mean_acceptance_length, summary.draft_ms):
        assert figure == Estimate.missing(NO_SPECULATION)


def test_a_single_prompt_gives_figures_without_intervals(make_request: MakeRequest) -> None:
    requests = [make_request("k2", "p1", [(2, 1, 1.0)], repeat=repeat) for repeat in range(3)]

    assert summarise(K2, requests).mean_acceptance_length == Estimate(
        value=2.0, interval=None, reason="a single prompt gives no interval"
    )


def test_a_figure_that_most_prompts_lack_has_no_interval(make_request: MakeRequest) -> None:
    drafting = make_request("k2", "p0", [(2, 1, 1.0)])
    others = [make_request("k2", f"p{i}", [(0, 0, 1.0)]) for i in range(1, 9)]

    rate = summarise(K2, [drafting, *others]).draft_acceptance_rate

    assert rate == Estimate(0.5, None, "too few prompts have this figure for an interval")


def test_an_arm_without_requests_says_so_in_every_figure() -> None:
    summary = summarise(K2, [])

    assert (summary.requests, summary.prompts) == (0, 0)
    assert summary.tokens_per_s == summary.coverage == Estimate.missing(NO_REQUEST)
    assert summary.slowest_prompt_tokens_per_s is None


def test_a_request_that_ended_with_its_first_token_has_no_decode_figures(
    make_request: MakeRequest,
) -> None:
    summary = summarise(K2, [make_request("k2", "p1", []), make_request("k2", "p2", [])])

    assert (summary.requests, summary.output_tokens, summary.decode_tokens) == (2, 2, 0)
    assert summary.tokens_per_s == Estimate.missing("no decode step")


def test_an_interval_holds_its_figure(two_prompts: list[RequestRecord]) -> None:
    summary = summarise(K2, two_prompts)
    interval = summary.tokens_per_s.interval

    assert isinstance(interval, Interval)
    assert interval.low <= 7 / 12 <= interval.high
    assert interval.level == 0.95
