"""The rule: which arm pays in a segment, whether none does, or whether the figures cannot say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from outrider.advice.comparison import Comparison, SegmentComparison
from outrider.advice.paired_speed import PairedSpeed

MINIMAL_GAIN = 1.02
"""A speed-up whose interval ends below this is no reason to turn speculation on."""

FEWEST_PROMPTS = 5
"""Below it intervals hold far less often than they say (see `acceptance.intervals`): no verdict."""


class Verdict(StrEnum):
    """What to do in a segment."""

    USE = "use"
    OFF = "off"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict of one segment and the arm that it turns on, over no speculation.

    `subject` is the arm to use; without one, the fastest of those that keep the verdict from
    "off"; for "off" the fastest. None when there is no arm to speak of.
    """

    segment: SegmentComparison
    verdict: Verdict
    subject: PairedSpeed | None

    @property
    def lacks_prompts(self) -> bool:
        """Whether it is the number of measured prompts that keeps the verdict open."""
        open_ = self.verdict is Verdict.INCONCLUSIVE
        return open_ and self.subject is not None and not _enough_prompts(self.subject)


def decide(comparison: Comparison) -> tuple[Decision, ...]:
    """Decide every segment of the comparison, in its order.

    An arm pays when the interval of its speed-up lies above 1. Of those that pay, the one with
    the smallest K that cannot be told from the fastest is taken: ties go to the simpler setting.
    When none pays, speculation is off if every arm certainly stays below `MINIMAL_GAIN`. Arms
    that changed the output are never taken, and an arm paired on fewer than `FEWEST_PROMPTS`
    prompts, as in a run that was stopped early, proves neither a gain nor a loss.
    """
    ks = {arm.name: arm.num_speculative_tokens for arm in comparison.arms}
    return tuple(_decide(segment, ks, comparison.wrong_arms) for segment in comparison.segments)


def _decide(
    segment: SegmentComparison, ks: Mapping[str, int], wrong_arms: Sequence[str]
) -> Decision:
    candidates = [paired for paired in segment.against_baseline if paired.arm not in wrong_arms]
    ties = {paired.arm for paired in segment.against_best if not _certainly_slower(paired)}
    best = [
        paired for paired in candidates if _gains(paired) and paired.arm in ties | {segment.best}
    ]
    if best:
        return Decision(segment, Verdict.USE, min(best, key=lambda paired: ks[paired.arm]))
    undecided = [paired for paired in candidates if _may_gain(paired)]
    if undecided or not segment.against_baseline:
        return Decision(segment, Verdict.INCONCLUSIVE, _fastest(undecided))
    return Decision(segment, Verdict.OFF, _fastest(candidates))


def _certainly_slower(paired: PairedSpeed) -> bool:
    """Whether the arm is told apart from a faster one; without an interval it is no tie either."""
    return paired.speed_up.interval is None or paired.speed_up.interval.high < 1


def _enough_prompts(paired: PairedSpeed) -> bool:
    return paired.prompts >= FEWEST_PROMPTS


def _gains(paired: PairedSpeed) -> bool:
    return paired.pays and _enough_prompts(paired)


def _may_gain(paired: PairedSpeed) -> bool:
    interval = paired.speed_up.interval
    return interval is None or interval.high >= MINIMAL_GAIN or not _enough_prompts(paired)


def _fastest(candidates: Sequence[PairedSpeed]) -> PairedSpeed | None:
    return max(candidates, key=lambda paired: paired.speed_up.value or 0, default=None)
