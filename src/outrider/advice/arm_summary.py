"""What one arm did in one segment."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from outrider.acceptance.estimate import Estimate, Figures, estimate
from outrider.acceptance.histogram import AcceptanceHistogram
from outrider.acceptance.intervals import FloatArray
from outrider.advice.positions import PositionSurvival, position_survivals
from outrider.records.arm import Arm
from outrider.records.request import RequestRecord, StepRecord

NO_SPECULATION = "no speculation, so nothing was drafted"
NO_REQUEST = "no request was finished"
_NO_DRAFT = "no step had a draft (S = 0)"
_NO_STEP = "no decode step"
_UNDEFINED_DRAFTING = {
    "mean_acceptance_length": _NO_DRAFT,
    "draft_acceptance_rate": _NO_DRAFT,
    "immediate_failure_rate": _NO_DRAFT,
    "full_draft_rate": _NO_DRAFT,
    "coverage": _NO_STEP,
    "draft_ms": _NO_STEP,
}
_UNDEFINED = _UNDEFINED_DRAFTING | {
    "verify_ms": _NO_STEP,
    "step_ms": _NO_STEP,
    "tokens_per_decode_step": _NO_STEP,
    "tokens_per_s": _NO_STEP,
    "time_per_output_token_ms": _NO_STEP,
}


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """Counts and figures of one arm, from its finished requests in one segment.

    S of the `decode_steps` were `verification_steps`, which had a draft: of `drafted` (D) and
    `accepted` (A) tokens. `histogram` is (H_0, ..., H_K), None without speculation.
    `output_tokens` include the first of each request, which the prefill gives; the speeds are
    of decoding, over `decode_tokens`. The slowest and the fastest prompt bound the speeds.
    """

    arm: str
    requests: int
    prompts: int
    output_tokens: int
    decode_tokens: int
    decode_steps: int
    verification_steps: int
    drafted: int
    accepted: int
    histogram: tuple[int, ...] | None
    positions: tuple[PositionSurvival, ...]
    mean_acceptance_length: Estimate
    draft_acceptance_rate: Estimate
    immediate_failure_rate: Estimate
    full_draft_rate: Estimate
    coverage: Estimate
    draft_ms: Estimate
    verify_ms: Estimate
    step_ms: Estimate
    tokens_per_decode_step: Estimate
    tokens_per_s: Estimate
    time_per_output_token_ms: Estimate
    slowest_prompt_tokens_per_s: float | None
    fastest_prompt_tokens_per_s: float | None


class _Totals(NamedTuple):
    """Sums over the requests of one prompt, or an array of such sums."""

    steps: FloatArray
    verification_steps: FloatArray
    drafted: FloatArray
    accepted: FloatArray
    failures: FloatArray
    full_drafts: FloatArray
    tokens: FloatArray
    draft_s: FloatArray
    verify_s: FloatArray
    step_s: FloatArray


def summarise_arm(
    arm: Arm, requests: Sequence[RequestRecord], *, rng: np.random.Generator
) -> ArmSummary:
    """Summarise the finished requests of `arm`, all of one segment."""
    steps = [step for request in requests for step in request.steps]
    verification = [step for step in steps if step.drafted]
    histogram = _histogram(verification, arm) if arm.speculates else None
    totals = np.array(
        [_totals(of_prompt, arm.num_speculative_tokens) for of_prompt in by_prompt(requests)]
    )
    speeds = [
        prompt.tokens / prompt.step_s for prompt in map(_Totals._make, totals) if prompt.step_s
    ]
    return ArmSummary(
        arm=arm.name,
        requests=len(requests),
        prompts=len(totals),
        output_tokens=sum(len(request.output_token_ids) for request in requests),
        decode_tokens=sum(step.emitted for step in steps),
        decode_steps=len(steps),
        verification_steps=len(verification),
        drafted=sum(step.drafted for step in steps),
        accepted=sum(step.accepted for step in steps),
        histogram=histogram.counts if histogram else None,
        positions=position_survivals(verification, histogram) if histogram else (),
        slowest_prompt_tokens_per_s=float(min(speeds)) if speeds else None,
        fastest_prompt_tokens_per_s=float(max(speeds)) if speeds else None,
        **_estimates(arm, totals, rng),
    )


def by_prompt(requests: Iterable[RequestRecord]) -> list[list[RequestRecord]]:
    """Return the requests of each prompt, its repeats together, in order of appearance."""
    groups: dict[str, list[RequestRecord]] = {}
    for request in requests:
        groups.setdefault(request.prompt_id, []).append(request)
    return list(groups.values())


def _histogram(verification: Sequence[StepRecord], arm: Arm) -> AcceptanceHistogram:
    return AcceptanceHistogram.from_steps(
        [step.accepted for step in verification],
        [step.drafted for step in verification],
        arm.num_speculative_tokens,
    )


def _totals(requests: Sequence[RequestRecord], k: int) -> tuple[float, ...]:
    steps = [step for request in requests for step in request.steps]
    verification = [step for step in steps if step.drafted]
    return (
        len(steps),
        len(verification),
        sum(step.drafted for step in verification),
        sum(step.accepted for step in verification),
        sum(step.accepted == 0 for step in verification),
        sum(step.accepted == k for step in verification),
        sum(step.emitted for step in steps),
        sum(step.draft_s for step in steps),
        sum(step.verify_s for step in steps),
        sum(step.step_s for step in steps),
    )


def _figures(sums: FloatArray) -> Figures:
    t = _Totals(*np.moveaxis(sums, -1, 0))
    return {
        "mean_acceptance_length": (t.verification_steps + t.accepted) / t.verification_steps,
        "draft_acceptance_rate": t.accepted / t.drafted,
        "immediate_failure_rate": t.failures / t.verification_steps,
        "full_draft_rate": t.full_drafts / t.verification_steps,
        "coverage": t.verification_steps / t.steps,
        "draft_ms": 1e3 * t.draft_s / t.steps,
        "verify_ms": 1e3 * t.verify_s / t.steps,
        "step_ms": 1e3 * t.step_s / t.steps,
        "tokens_per_decode_step": t.tokens / t.steps,
        "tokens_per_s": t.tokens / t.step_s,
        "time_per_output_token_ms": 1e3 * t.step_s / t.tokens,
    }


def _estimates(arm: Arm, totals: FloatArray, rng: np.random.Generator) -> dict[str, Estimate]:
    if not totals.size:
        return dict.fromkeys(_UNDEFINED, Estimate.missing(NO_REQUEST))
    estimates = estimate(totals, _figures, _UNDEFINED, rng=rng)
    if not arm.speculates:
        estimates |= dict.fromkeys(_UNDEFINED_DRAFTING, Estimate.missing(NO_SPECULATION))
    return estimates
