"""Every arm beside no speculation, overall and for each kind of prompt."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from outrider.advice.arm_summary import ArmSummary, summarise_arm
from outrider.advice.paired_speed import PairedSpeed, pair_speed
from outrider.records.arm import Arm
from outrider.records.request import Phase, RequestRecord

OVERALL = "overall"


@dataclass(frozen=True, slots=True)
class SegmentComparison:
    """The arms on the prompts of one segment: `OVERALL` or a prompt kind.

    `summaries` has every arm in the order of the run; `against_baseline` has every arm that
    speculates over no speculation, and is empty where the run had no arm without speculation.
    `best` is the arm of the highest speed-up, arms whose gain is certain before all others, and
    `against_best` has the other arms that speculate over it; None and empty without a speed-up.
    """

    segment: str
    prompts: int
    summaries: tuple[ArmSummary, ...]
    against_baseline: tuple[PairedSpeed, ...]
    best: str | None
    against_best: tuple[PairedSpeed, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The segments of a run over the same `arms`: `OVERALL` first, then its prompt kinds.

    `wrong_arms` are those that changed the output, which no segment has as its best.
    """

    arms: tuple[Arm, ...]
    wrong_arms: tuple[str, ...]
    segments: tuple[SegmentComparison, ...]


def compare(
    requests: Iterable[RequestRecord],
    arms: Sequence[Arm],
    kinds: Mapping[str, str],
    *,
    wrong_arms: Collection[str] = (),
    rng: np.random.Generator,
) -> Comparison:
    """Compare `arms` on what they finished; warm-up requests are left out.

    `kinds` has the kind of every prompt of the run by its id, in the order of the prompts. An
    interrupted run may have fewer requests of one arm than of another: only requests that both
    arms finished are paired. The same requests, in any order, and the same `rng` state give the
    same numbers.
    """
    order = {prompt_id: place for place, prompt_id in enumerate(kinds)}
    measured = sorted(
        (request for request in requests if request.phase is Phase.MEASURED),
        key=lambda request: (order[request.prompt_id], request.repeat),
    )
    segments = []
    for segment, prompt_ids in _segments(kinds).items():
        finished = {
            arm: [r for r in measured if r.arm == arm.name and r.prompt_id in prompt_ids]
            for arm in arms
        }
        against_baseline = _against_baseline(finished, rng)
        best = _best(against_baseline, wrong_arms)
        segments.append(
            SegmentComparison(
                segment=segment,
                prompts=len(prompt_ids),
                summaries=tuple(summarise_arm(arm, finished[arm], rng=rng) for arm in arms),
                against_baseline=against_baseline,
                best=best,
                against_best=_against_best(finished, best, rng),
            )
        )
    return Comparison(
        arms=tuple(arms),
        wrong_arms=tuple(arm.name for arm in arms if arm.name in wrong_arms),
        segments=tuple(segments),
    )


def _segments(kinds: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the prompt ids of each segment; a single kind would only repeat the overall."""
    segments = {OVERALL: set(kinds)}
    if len(set(kinds.values())) > 1:
        for prompt_id, kind in kinds.items():
            segments.setdefault(kind, set()).add(prompt_id)
    return segments


def _against_baseline(
    finished: Mapping[Arm, Sequence[RequestRecord]], rng: np.random.Generator
) -> tuple[PairedSpeed, ...]:
    baseline = next((arm for arm in finished if not arm.speculates), None)
    if baseline is None:
        return ()
    return tuple(
        pair_speed(arm.name, requests, baseline.name, finished[baseline], rng=rng)
        for arm, requests in finished.items()
        if arm.speculates
    )


def _best(against_baseline: Sequence[PairedSpeed], wrong_arms: Collection[str]) -> str | None:
    candidates = {
        paired.arm: (paired.pays, paired.speed_up.value)
        for paired in against_baseline
        if paired.speed_up.value is not None and paired.arm not in wrong_arms
    }
    return max(candidates, key=candidates.__getitem__) if candidates else None


def _against_best(
    finished: Mapping[Arm, Sequence[RequestRecord]], best: str | None, rng: np.random.Generator
) -> tuple[PairedSpeed, ...]:
    theirs = next((requests for arm, requests in finished.items() if arm.name == best), None)
    if best is None or theirs is None:
        return ()
    return tuple(
        pair_speed(arm.name, requests, best, theirs, rng=rng)
        for arm, requests in finished.items()
        if arm.speculates and arm.name != best
    )
