from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.acceptance.estimate import Estimate
from outrider.advice.paired_speed import NO_PAIR, PairedSpeed, pair_speed
from outrider.records.request import FinishReason, Phase, RequestRecord, StepRecord

MakeRequest = Callable[..., RequestRecord]


def pair(ours: list[RequestRecord], theirs: list[RequestRecord]) -> PairedSpeed:
    return pair_speed("k2", ours, "none", theirs, rng=np.random.default_rng(0))


def test_speed_up_is_tokens_per_step_over_step_inflation(make_request: MakeRequest) -> None:
    ours = [
        make_request("k2", "p1", [(2, 2, 3.0), (0, 0, 2.0)]),
        make_request("k2", "p2", [(2, 1, 3.0)]),
    ]
    theirs = [
        make_request("none", "p1", [(0, 0, 2.0)] * 4),
        make_request("none", "p2", [(0, 0, 2.0)] * 2),
    ]

    paired = pair(ours, theirs)

    assert (paired.pairs, paired.prompts, paired.equal_length_pairs) == (2, 2, 2)
    assert paired.tokens_per_decode_step.value == 2.0
    assert paired.step_inflation.value == pytest.approx(4 / 3)
    assert paired.verification_step_inflation.value == pytest.approx(3 / 2)
    assert paired.speed_up.value == pytest.approx(1.5)
    # With two prompts the extremes are either one alone: 8 s over 5 s, and 4 s over 3 s.
    interval = paired.speed_up.interval
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((4 / 3, 8 / 5))
    assert paired.pays


def test_only_requests_that_both_arms_finished_count(make_request: MakeRequest) -> None:
    ours = [
        make_request("k2", "p1", [(2, 1, 1.0)]),
        make_request("k2", "p1", [(2, 1, 1.0)], repeat=1),
        make_request("k2", "p2", [(2, 0, 900.0)]),
    ]
    theirs = [
        make_request("none", "p1", [(0, 0, 1.0)] * 2, repeat=1),
        make_request("none", "p3", [(0, 0, 900.0)]),
    ]

    paired = pair(ours, theirs)

    assert (paired.pairs, paired.prompts) == (1, 1)
    assert paired.speed_up == Estimate(2.0, None, "a single prompt gives no interval")
    assert not paired.pays


def test_no_pair_has_no_figures(make_request: MakeRequest) -> None:
    paired = pair([make_request("k2", "p1", [(2, 1, 1.0)])], [])

    assert (paired.pairs, paired.prompts) == (0, 0)
    assert paired.speed_up == paired.step_inflation == Estimate.missing(NO_PAIR)


def test_outputs_of_different_length_are_counted(make_request: MakeRequest) -> None:
    ours = [make_request("k2", prompt, [(2, 1, 1.0)]) for prompt in ("p1", "p2")]
    theirs = [
        make_request("none", "p1", [(0, 0, 1.0)] * 2),
        make_request("none", "p2", [(0, 0, 1.0)] * 3),
    ]

    paired = pair(ours, theirs)

    assert (paired.equal_length_pairs, paired.pairs) == (1, 2)
    assert (paired.output_tokens, paired.against_output_tokens) == (6, 7)
    # Time per token, so a longer answer is not held against an arm: (5 s / 5) over (2 s / 4).
    assert paired.speed_up.value == pytest.approx(2.0)


def test_an_arm_without_drafts_has_no_verification_step_inflation(
    make_request: MakeRequest,
) -> None:
    prompts = ("p1", "p2")
    ours = [make_request("k2", prompt, [(0, 0, 2.0)]) for prompt in prompts]
    theirs = [make_request("none", prompt, [(0, 0, 1.0)]) for prompt in prompts]

    paired = pair(ours, theirs)

    assert paired.verification_step_inflation == Estimate.missing("no step had a draft (S = 0)")
    assert paired.step_inflation.value == 2.0
    assert paired.speed_up.value == 0.5


_TIMES = st.floats(min_value=1e-3, max_value=1.0)
_STEP = st.tuples(st.integers(0, 4), st.floats(0, 1), _TIMES)


def _request(arm: str, prompt: int, steps: list[StepRecord]) -> RequestRecord:
    tokens = tuple(range(1 + sum(step.emitted for step in steps)))
    return RequestRecord(
        arm, str(prompt), 0, Phase.MEASURED, 3, tokens, FinishReason.LENGTH, 0.1, tuple(steps)
    )


@given(prompts=st.lists(st.lists(_STEP, min_size=1, max_size=5), min_size=1, max_size=4))
def test_speed_up_always_is_m_hat_over_rho_and_the_ratio_of_total_times(
    prompts: list[list[tuple[int, float, float]]],
) -> None:
    ours, theirs = [], []
    for number, steps in enumerate(prompts):
        spec = [
            StepRecord(drafted, a := int(drafted * share), a + 1, 0.0, 0.0, step_s)
            for drafted, share, step_s in steps
        ]
        plain = [StepRecord(0, 0, 1, 0.0, 0.0, 0.02)] * sum(step.emitted for step in spec)
        ours.append(_request("k4", number, spec))
        theirs.append(_request("none", number, plain))

    paired = pair_speed("k4", ours, "none", theirs, rng=np.random.default_rng(0))

    speed_up, m_hat, rho = (
        figure.value
        for figure in (paired.speed_up, paired.tokens_per_decode_step, paired.step_inflation)
    )
    assert speed_up is not None
    assert m_hat is not None
    assert rho is not None
    assert speed_up == pytest.approx(m_hat / rho)
    # Equal lengths here, so the ratio of the times per token is that of the times.
    assert speed_up == pytest.approx(
        sum(request.decode_s for request in theirs) / sum(request.decode_s for request in ours)
    )
