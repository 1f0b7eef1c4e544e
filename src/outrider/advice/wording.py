"""A decision in words: what to do, how sure that is, and why."""

from collections.abc import Mapping, Sequence

from outrider.acceptance.estimate import Estimate
from outrider.advice.comparison import OVERALL
from outrider.advice.decision import FEWEST_PROMPTS, MINIMAL_GAIN, Decision, Verdict
from outrider.advice.paired_speed import PairedSpeed
from outrider.records.arm import Arm

_METHODS = {"ngram": "n-gram"}


def describe_arm(arm: Arm) -> str:
    """Name a setting as prose does, e.g. "n-gram with K = 4"."""
    if not arm.speculates:
        return "no speculation"
    return f"{_METHODS.get(arm.method, arm.method)} with K = {arm.num_speculative_tokens}"


def describe_decision(decision: Decision, arms: Mapping[str, Arm], *, smoke: bool) -> str:
    """Say in a few sentences what to do, with the numbers and the reason.

    A smoke run is too short for a verdict, so its figures are told without one.
    """
    subject = decision.subject
    opening = "Smoke run: too short to decide. " if smoke else ""
    if subject is None or subject.speed_up.value is None:
        return opening + _describe_no_speed_up(decision)
    arm, speed = describe_arm(arms[subject.arm]), _describe_speed(subject)
    if smoke:
        advice = f"So far {arm} decodes {speed}."
    elif decision.verdict is Verdict.USE:
        advice = f"Use {arm}: it decodes {speed}{_describe_tie(decision, subject, arms)}."
    elif decision.verdict is Verdict.OFF:
        advice = (
            f"Leave speculation off: no lossless setting gains {100 * (MINIMAL_GAIN - 1):.0f} %."
            f" The fastest, {arm}, decodes {speed}."
        )
    else:
        advice = f"Inconclusive: {arm} decodes {speed}. {_describe_next(decision)}"
    return f"{opening}{_describe_lengths(subject)}{advice} {_describe_cost(decision, subject)}"


def describe_kinds(overall: Decision, kinds: Sequence[Decision], arms: Mapping[str, Arm]) -> str:
    """Say where the prompt kinds part from the overall verdict; empty where none does."""
    if all(_advice(kind) == _advice(overall) for kind in kinds):
        return ""
    paying = {
        kind.segment.segment: f"{describe_arm(arms[kind.subject.arm])},"
        f" {kind.subject.speed_up.value:.2f} times as fast"
        for kind in kinds
        if kind.verdict is Verdict.USE and kind.subject and kind.subject.speed_up.value
    }
    off = [kind.segment.segment for kind in kinds if kind.verdict is Verdict.OFF]
    few = [kind.segment.segment for kind in kinds if kind.lacks_prompts]
    open_ = [
        kind.segment.segment
        for kind in kinds
        if kind.verdict is Verdict.INCONCLUSIVE and not kind.lacks_prompts
    ]
    told = []
    if paying:
        told.append(f"it pays on {_join([f'{name} ({how})' for name, how in paying.items()])}")
    if off:
        told.append(f"it does not pay on {_join(off)}")
    if open_:
        told.append(f"{_join(open_)} cannot be decided")
    if few:
        have = "has" if len(few) == 1 else "have"
        told.append(f"{_join(few)} {have} too few measured prompts for a verdict")
    text = f"By kind of prompt, {'; '.join(told)}"
    if paying and (off or overall.verdict is not Verdict.USE):
        text += f": turn it on only for {_join(list(paying))}, if that can be served apart"
    return f"{text}."


def _advice(decision: Decision) -> tuple[Verdict, str | None]:
    used = decision.subject.arm if decision.subject else None
    return decision.verdict, used if decision.verdict is Verdict.USE else None


def _describe_no_speed_up(decision: Decision) -> str:
    if not decision.segment.against_baseline:
        return (
            "Inconclusive: the run lacks an arm without speculation or one with it, so there is"
            " nothing to compare."
        )
    if decision.subject is None:
        return "Leave speculation off: every setting changed the output."
    return f"Inconclusive: there is no speed-up to tell ({decision.subject.speed_up.reason})."


def _describe_next(decision: Decision) -> str:
    if decision.lacks_prompts:
        return f"Fewer than {FEWEST_PROMPTS} prompts decide nothing: give it more."
    if decision.segment.segment == OVERALL:
        return "Leave speculation off until more prompts have been measured."
    return "Only more prompts of this kind can decide it."


def _describe_speed(subject: PairedSpeed) -> str:
    value = subject.speed_up.value
    return f"{value:.2f} times as fast as no speculation ({_describe_interval(subject)})"


def _describe_interval(paired: PairedSpeed) -> str:
    interval = paired.speed_up.interval
    prompts = f"{paired.prompts} prompt{'s' if paired.prompts != 1 else ''}"
    if interval is None:
        return f"{paired.speed_up.reason}"
    return f"{interval.level * 100:g} % interval {interval.low:.2f}–{interval.high:.2f}, {prompts}"


def _describe_tie(decision: Decision, subject: PairedSpeed, arms: Mapping[str, Arm]) -> str:
    best = decision.segment.best
    if best is None or best == subject.arm:
        return ""
    speed_ups = {paired.arm: paired.speed_up.value for paired in decision.segment.against_baseline}
    return (
        f"; {describe_arm(arms[best])} measures {speed_ups[best]:.2f}, too close to tell apart,"
        " and the smaller K is the simpler setting"
    )


def _describe_lengths(subject: PairedSpeed) -> str:
    different = subject.pairs - subject.equal_length_pairs
    if not different:
        return ""
    return (
        f"Output lengths differ in {different} of {subject.pairs} pairs"
        f" ({subject.output_tokens:,} tokens in all against {subject.against_output_tokens:,}). "
    )


def _describe_cost(decision: Decision, subject: PairedSpeed) -> str:
    summary = next(arm for arm in decision.segment.summaries if arm.arm == subject.arm)
    if not summary.verification_steps:
        return "It found no draft at any step, so there was nothing to gain."
    return (
        f"{_percent(summary.coverage)} of its decode steps had a draft; a step yields"
        f" {_number(subject.tokens_per_decode_step)} tokens (M̂) and takes"
        f" {_number(subject.step_inflation)} times as long as a plain one (ρ), where"
        f" {_number(subject.tokens_per_decode_step)} would be break-even."
    )


def _number(figure: Estimate) -> str:
    return "unknown" if figure.value is None else f"{figure.value:.2f}"


def _percent(figure: Estimate) -> str:
    return "an unknown share" if figure.value is None else f"{100 * figure.value:.1f} %"


def _join(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
