"""The findings of a comparison, one for each segment."""

from dataclasses import dataclass

from outrider.advice.comparison import Comparison
from outrider.advice.decision import Verdict, decide
from outrider.advice.wording import describe_decision, describe_kinds


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict of a segment, the arm to use where it is "use", and both in words."""

    segment: str
    verdict: Verdict
    arm: str | None
    text: str


def find(comparison: Comparison, *, smoke: bool) -> tuple[Finding, ...]:
    """Return the finding of each segment, in the comparison's order.

    The overall text also says where the prompt kinds part from it. A smoke run has no verdict
    but `Verdict.INCONCLUSIVE`, whatever its figures.
    """
    arms = {arm.name: arm for arm in comparison.arms}
    overall, *kinds = decisions = decide(comparison)
    findings = []
    for decision in decisions:
        text = describe_decision(decision, arms, smoke=smoke)
        if decision is overall and not smoke:
            text = f"{text} {describe_kinds(overall, kinds, arms)}".rstrip()
        used = decision.verdict is Verdict.USE and not smoke
        findings.append(
            Finding(
                segment=decision.segment.segment,
                verdict=Verdict.INCONCLUSIVE if smoke else decision.verdict,
                arm=decision.subject.arm if used and decision.subject else None,
                text=text,
            )
        )
    return tuple(findings)
