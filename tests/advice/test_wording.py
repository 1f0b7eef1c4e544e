"""What is said of the prompt kinds, from decisions made by hand."""

import pytest

from outrider.acceptance.estimate import Estimate
from outrider.acceptance.intervals import Interval
from outrider.advice.comparison import SegmentComparison
from outrider.advice.decision import Decision, Verdict
from outrider.advice.paired_speed import PairedSpeed
from outrider.advice.wording import describe_kinds
from outrider.records.arm import Arm

ARMS = {"k1": Arm("k1", "ngram", 1), "k4": Arm("k4", "ngram", 4)}
NOTHING = Estimate.missing("not part of this test")
USE, OFF, INCONCLUSIVE = Verdict


def decision(segment: str, verdict: Verdict, arm: str = "k1", prompts: int = 6) -> Decision:
    speed_up = Estimate(1.25, Interval(0.5, 1.5, level=0.95, clusters=prompts), None)
    paired = PairedSpeed(
        arm, "none", prompts, prompts, prompts, 100, 100, NOTHING, NOTHING, NOTHING, speed_up
    )
    return Decision(SegmentComparison(segment, prompts, (), (paired,), arm, ()), verdict, paired)


CHAT_OFF, COPY_OFF = (decision(kind, OFF) for kind in ("chat", "copy"))
CHAT_OPEN, COPY_OPEN = (decision(kind, INCONCLUSIVE) for kind in ("chat", "copy"))
CHAT_FEW, COPY_FEW = (decision(kind, INCONCLUSIVE, prompts=4) for kind in ("chat", "copy"))


@pytest.mark.parametrize(
    ("overall", "kinds", "told"),
    [
        (USE, [CHAT_OFF, COPY_OPEN], "it does not pay on chat; copy cannot be decided"),
        (USE, [CHAT_OPEN, COPY_OPEN], "chat and copy cannot be decided"),
        (USE, [CHAT_FEW, COPY_FEW], "chat and copy have too few measured prompts for a verdict"),
        (
            USE,
            [CHAT_OPEN, COPY_FEW],
            "chat cannot be decided; copy has too few measured prompts for a verdict",
        ),
        (INCONCLUSIVE, [CHAT_OFF, COPY_OFF], "it does not pay on chat and copy"),
        (OFF, [CHAT_OPEN, COPY_OFF], "it does not pay on copy; chat cannot be decided"),
    ],
)
def test_without_a_kind_that_pays_nothing_is_to_be_turned_on(
    overall: Verdict, kinds: list[Decision], told: str
) -> None:
    said = describe_kinds(decision("overall", overall, prompts=12), kinds, ARMS)

    assert said == f"By kind of prompt, {told}."


def test_a_kind_that_pays_with_kinds_too_small_is_told_with_its_arm() -> None:
    kinds = [decision("chat", USE, arm="k4"), COPY_FEW]
    told = (
        "By kind of prompt, it pays on chat (n-gram with K = 4, 1.25 times as fast); copy has too"
        " few measured prompts for a verdict"
    )

    gain, open_ = (
        describe_kinds(decision("overall", verdict, prompts=10), kinds, ARMS)
        for verdict in (USE, INCONCLUSIVE)
    )

    assert gain == f"{told}."
    assert open_ == f"{told}: turn it on only for chat, if that can be served apart."


@pytest.mark.parametrize("verdict", Verdict)
def test_kinds_of_the_same_verdict_are_not_told(verdict: Verdict) -> None:
    kinds = [decision(kind, verdict) for kind in ("chat", "copy")]

    assert describe_kinds(decision("overall", verdict, prompts=12), kinds, ARMS) == ""
