"""The rule on hand-made intervals."""

from collections.abc import Mapping

import pytest

from outrider.acceptance.estimate import Estimate
from outrider.acceptance.intervals import Interval
from outrider.advice.comparison import Comparison, SegmentComparison
from outrider.advice.decision import Verdict, decide
from outrider.advice.paired_speed import PairedSpeed
from outrider.records.arm import BASELINE, Arm

ARMS = (BASELINE, *(Arm(f"k{k}", "ngram", k) for k in (1, 2, 4)))
NOTHING = Estimate.missing("not part of this test")

Range = tuple[float, float] | None


def speed(arm: str, against: str, value: float, interval: Range, prompts: int = 24) -> PairedSpeed:
    speed_up = Estimate(value, interval and Interval(*interval, 0.95, clusters=prompts), None)
    return PairedSpeed(
        arm, against, prompts, prompts, prompts, 100, 100, NOTHING, NOTHING, NOTHING, speed_up
    )


def decided(
    speeds: dict[str, tuple[float, Range]],
    best: str | None,
    against_best: dict[str, tuple[float, Range]] | None = None,
    wrong_arms: tuple[str, ...] = (),
    prompts: Mapping[str, int] | None = None,
) -> tuple[Verdict, str | None]:
    segment = SegmentComparison(
        segment="overall",
        prompts=24,
        summaries=(),
        against_baseline=tuple(
            speed(arm, "none", *how, (prompts or {}).get(arm, 24)) for arm, how in speeds.items()
        ),
        best=best,
        against_best=tuple(
            speed(arm, best or "", *how) for arm, how in (against_best or {}).items()
        ),
    )
    (decision,) = decide(Comparison(ARMS, wrong_arms, (segment,)))
    return decision.verdict, decision.subject.arm if decision.subject else None


def test_an_interval_above_one_pays() -> None:
    assert decided({"k1": (1.2, (1.1, 1.3))}, best="k1") == (Verdict.USE, "k1")


def test_of_arms_that_pay_the_fastest_is_used_when_the_others_are_certainly_slower() -> None:
    assert decided(
        {"k1": (1.2, (1.1, 1.3)), "k2": (1.4, (1.3, 1.5)), "k4": (1.3, (1.2, 1.4))},
        best="k2",
        against_best={"k1": (0.86, (0.8, 0.9)), "k4": (0.93, (0.9, 0.99))},
    ) == (Verdict.USE, "k2")


def test_a_tie_goes_to_the_smaller_k() -> None:
    assert decided(
        {"k1": (1.2, (1.1, 1.3)), "k2": (1.39, (1.2, 1.6)), "k4": (1.4, (1.3, 1.5))},
        best="k4",
        against_best={"k1": (0.86, (0.8, 0.9)), "k2": (0.99, (0.9, 1.0))},
    ) == (Verdict.USE, "k2")


def test_a_tie_with_an_arm_that_does_not_pay_itself_is_none() -> None:
    assert decided(
        {"k1": (1.1, (0.9, 1.3)), "k2": (1.2, (1.1, 1.3))},
        best="k2",
        against_best={"k1": (0.92, (0.8, 1.1))},
    ) == (Verdict.USE, "k2")


def test_a_larger_k_never_wins_by_a_tie() -> None:
    assert decided(
        {"k2": (1.4, (1.3, 1.5)), "k4": (1.4, (1.3, 1.5))},
        best="k2",
        against_best={"k4": (1.0, (0.99, 1.01))},
    ) == (Verdict.USE, "k2")


@pytest.mark.parametrize("interval", [(0.8, 0.95), (0.99, 1.019), (1.0, 1.01)])
def test_speculation_is_off_when_no_arm_can_gain_two_percent(
    interval: tuple[float, float],
) -> None:
    assert decided(
        {"k1": (0.9, interval), "k2": (0.7, (0.6, 0.8))},
        best="k1",
        against_best={"k2": (0.8, (0.7, 0.9))},
    ) == (Verdict.OFF, "k1")


@pytest.mark.parametrize("interval", [(0.9, 1.3), (0.99, 1.03), (1.0, 1.02)])
def test_an_interval_from_a_loss_to_a_gain_decides_nothing(interval: tuple[float, float]) -> None:
    assert decided({"k1": (1.01, interval)}, best="k1") == (Verdict.INCONCLUSIVE, "k1")


def test_one_arm_that_may_still_gain_keeps_speculation_from_being_called_off() -> None:
    assert decided(
        {"k1": (1.0, (0.99, 1.01)), "k4": (0.97, (0.8, 1.2))},
        best="k1",
        against_best={"k4": (0.97, (0.8, 1.2))},
    ) == (Verdict.INCONCLUSIVE, "k4")


def test_a_speed_up_without_interval_decides_nothing() -> None:
    assert decided({"k1": (3.0, None)}, best="k1") == (Verdict.INCONCLUSIVE, "k1")


@pytest.mark.parametrize(
    ("interval", "verdict"), [((1.1, 1.3), Verdict.USE), ((0.7, 0.9), Verdict.OFF)]
)
def test_fewer_than_five_prompts_prove_neither_a_gain_nor_a_loss(
    interval: tuple[float, float], verdict: Verdict
) -> None:
    speeds: dict[str, tuple[float, Range]] = {"k1": (sum(interval) / 2, interval)}

    assert decided(speeds, best="k1", prompts={"k1": 5}) == (verdict, "k1")
    assert decided(speeds, best="k1", prompts={"k1": 4}) == (Verdict.INCONCLUSIVE, "k1")


def test_an_arm_with_too_few_prompts_is_no_tie_and_no_loss() -> None:
    tied: dict[str, tuple[float, Range]] = {"k1": (1.39, (1.2, 1.6)), "k2": (1.4, (1.3, 1.5))}
    slower: dict[str, tuple[float, Range]] = {"k1": (0.8, (0.7, 0.9)), "k2": (0.7, (0.6, 0.8))}
    against_best: dict[str, tuple[float, Range]] = {"k1": (0.99, (0.9, 1.1))}

    assert decided(tied, "k2", against_best, prompts={"k1": 4}) == (Verdict.USE, "k2")
    assert decided(slower, "k1", prompts={"k2": 4}) == (Verdict.INCONCLUSIVE, "k2")


def test_without_a_baseline_nothing_is_decided() -> None:
    assert decided({}, best=None) == (Verdict.INCONCLUSIVE, None)


def test_an_arm_that_changed_the_output_is_not_used_however_fast() -> None:
    speeds: dict[str, tuple[float, Range]] = {"k1": (1.2, (1.1, 1.3)), "k4": (2.0, (1.9, 2.1))}

    assert decided(
        speeds, best="k1", against_best={"k4": (1.7, (1.6, 1.8))}, wrong_arms=("k4",)
    ) == (Verdict.USE, "k1")
    assert decided(speeds, best=None, wrong_arms=("k1", "k4")) == (Verdict.OFF, None)
