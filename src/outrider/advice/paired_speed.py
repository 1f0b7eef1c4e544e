"""Two arms on the same prompts: which decodes faster, and by how much."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from outrider.acceptance.estimate import Estimate, Figures, estimate
from outrider.acceptance.intervals import FloatArray
from outrider.advice.arm_summary import by_prompt
from outrider.records.request import RequestRecord

NO_PAIR = "no request was finished by both arms"
_UNDEFINED = {
    "tokens_per_decode_step": "no decode step",
    "step_inflation": "no decode step to compare",
    "verification_step_inflation": "no step had a draft (S = 0)",
    "speed_up": "no decode step to compare",
}


@dataclass(frozen=True, slots=True)
class PairedSpeed:
    """Arm `arm` over arm `against`, from the requests that both finished, `pairs` of them.

    A pair is one repeat of one prompt. `tokens_per_decode_step` (M̂) is the arm's, and
    `step_inflation` (ρ) its mean decode step over that of `against`, so that `speed_up`, the
    time per token of `against` over the arm's, is M̂ / ρ wherever `against` does not speculate.
    `verification_step_inflation` takes only the arm's steps that had a draft.
    `equal_length_pairs` ended with as many output tokens in both arms.
    """

    arm: str
    against: str
    pairs: int
    prompts: int
    equal_length_pairs: int
    output_tokens: int
    against_output_tokens: int
    tokens_per_decode_step: Estimate
    step_inflation: Estimate
    verification_step_inflation: Estimate
    speed_up: Estimate

    @property
    def pays(self) -> bool:
        """Whether `arm` is certainly the faster: the interval of the speed-up lies above 1."""
        return self.speed_up.interval is not None and self.speed_up.interval.low > 1


class _Totals(NamedTuple):
    """Sums over the pairs of one prompt, or an array of such sums."""

    tokens: FloatArray
    steps: FloatArray
    step_s: FloatArray
    verification_steps: FloatArray
    verification_step_s: FloatArray
    against_tokens: FloatArray
    against_steps: FloatArray
    against_step_s: FloatArray


def pair_speed(
    arm: str,
    ours: Sequence[RequestRecord],
    against: str,
    theirs: Sequence[RequestRecord],
    *,
    rng: np.random.Generator,
) -> PairedSpeed:
    """Compare `arm`, whose requests are `ours`, with `against`, whose requests are `theirs`."""
    partners = {(request.prompt_id, request.repeat): request for request in theirs}
    paired = [request for request in ours if (request.prompt_id, request.repeat) in partners]
    prompts = [
        [(request, partners[request.prompt_id, request.repeat]) for request in of_prompt]
        for of_prompt in by_prompt(paired)
    ]
    lengths = [
        (len(our.output_token_ids), len(their.output_token_ids))
        for pairs in prompts
        for our, their in pairs
    ]
    return PairedSpeed(
        arm=arm,
        against=against,
        pairs=len(lengths),
        prompts=len(prompts),
        equal_length_pairs=sum(our == their for our, their in lengths),
        output_tokens=sum(our for our, _ in lengths),
        against_output_tokens=sum(their for _, their in lengths),
        **_estimates(np.array([_totals(pairs) for pairs in prompts]), rng),
    )


def _totals(pairs: Sequence[tuple[RequestRecord, RequestRecord]]) -> tuple[float, ...]:
    steps = [step for our, _ in pairs for step in our.steps]
    verification = [step for step in steps if step.drafted]
    against_steps = [step for _, their in pairs for step in their.steps]
    return (
        sum(step.emitted for step in steps),
        len(steps),
        sum(step.step_s for step in steps),
        len(verification),
        sum(step.step_s for step in verification),
        sum(step.emitted for step in against_steps),
        len(against_steps),
        sum(step.step_s for step in against_steps),
    )


def _figures(sums: FloatArray) -> Figures:
    t = _Totals(*np.moveaxis(sums, -1, 0))
    plain_step_s = t.against_step_s / t.against_steps
    return {
        "tokens_per_decode_step": t.tokens / t.steps,
        "step_inflation": t.step_s / t.steps / plain_step_s,
        "verification_step_inflation": t.verification_step_s / t.verification_steps / plain_step_s,
        "speed_up": t.against_step_s / t.against_tokens / (t.step_s / t.tokens),
    }


def _estimates(totals: FloatArray, rng: np.random.Generator) -> dict[str, Estimate]:
    if not totals.size:
        return dict.fromkeys(_UNDEFINED, Estimate.missing(NO_PAIR))
    return estimate(totals, _figures, _UNDEFINED, rng=rng)
