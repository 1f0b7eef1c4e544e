"""What K is worth: tokens per second for every K up to the recorded one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
import numpy.typing as npt

from outrider.acceptance.estimate import Estimate, estimate
from outrider.acceptance.intervals import FloatArray
from outrider.acceptance.reach import estimator_of, position_count, reach_of
from outrider.acceptance.segment_estimates import (
    FEWEST_RECORDS,
    NO_HISTOGRAM,
    NO_STEP,
    UNKNOWN_K,
    why_alone,
)
from outrider.acceptance.step_cost import StepCost
from outrider.acceptance.totals import Totals
from outrider.acceptance.undrafted import knows_decode_steps, knows_tokens, undrafted_steps

TIE = 0.02
"""The share of speed that is not worth a larger K: within it, the smaller is chosen."""


@dataclass(frozen=True, slots=True)
class DraftLengthOption:
    """One K, from 0 (no speculation): what a step of it yields, takes and gives.

    `tokens_per_step` is 1 + s_1 + ... + s_K of a step with a draft; the speed counts in the steps
    without one, as far as they are known. `step_cost` and `speed` are in the units of the
    choice. `regret` is the share of speed lost against the fastest K, 0 to 1.
    """

    k: int
    tokens_per_step: float
    step_cost: float
    speed: Estimate
    regret: float


@dataclass(frozen=True, slots=True)
class DraftLengthChoice:
    """The options of a segment and the best of them; ties, within 2 %, go to the smaller K.

    `relative`: costs are in plain steps and speeds in tokens per plain step, otherwise in ms and
    tokens/s. Speeds are of steps that have a draft. `best_k` is the smallest K that cannot be told
    from the fastest. `best_k_low` and `best_k_high` hold the best K in 95 % of resamples, None
    without an interval. `estimated`: K shorter than the recorded one is an estimate from the longer
    drafts.
    """

    relative: bool
    options: tuple[DraftLengthOption, ...]
    best_k: int
    best_k_low: int | None
    best_k_high: int | None
    estimated: bool
    notes: tuple[str, ...]


def choose_draft_length(
    totals: Totals,
    step_cost: StepCost,
    *,
    rng: np.random.Generator,
    unit: str = "requests",
    draws: int = 2000,
) -> DraftLengthChoice:
    """Return what every K from 0 to the recorded one is worth at a step cost.

    A K without a cost is left out, with a note. `unit` names in the plural what one row of the
    totals is. Raises ValueError with the reason where acceptance by position or every cost is
    unknown.
    """
    _check(totals)
    ks = _offered(totals, step_cost)
    costs = np.array([step_cost.cost(k) for k in ks], dtype=np.float64)
    tokens = _tokens_per_step(totals, totals.sums)[ks]
    plain = step_cost.cost(0)

    def speeds_of(sums: FloatArray) -> FloatArray:
        """Return tokens per cost for every K offered, [..., ks]."""
        steps = sums[..., totals.columns["steps"], np.newaxis]
        undrafted = undrafted_steps(totals, sums)[..., np.newaxis] if plain is not None else 0
        emitted = steps * _tokens_per_step(totals, sums)[..., ks] + undrafted
        scale = 1 if step_cost.relative else 1e3
        return scale * emitted / (steps * costs + undrafted * (plain or 0))

    def figures(sums: FloatArray) -> Mapping[str, FloatArray]:
        drawn = speeds_of(sums)
        named = {f"speed {k}": drawn[..., place] for place, k in enumerate(ks)}
        best = np.array(ks, dtype=np.float64)[_first_fastest(drawn)]
        return named | {"best": np.where(np.isfinite(drawn).all(axis=-1), best, np.nan)}

    speeds = speeds_of(totals.sums)

    estimates = estimate(
        totals.rows,
        figures,
        dict.fromkeys(figures(totals.sums), NO_STEP),
        rng=rng,
        draws=draws,
        unit=unit,
        alone=why_alone(totals, unit),
        fewest=FEWEST_RECORDS,
    )
    best_k, fastest_k = ks[int(_first_fastest(speeds))], ks[int(np.argmax(speeds))]
    spread = estimates["best"].interval
    low = None if spread is None else min(best_k, floor(spread.low))
    high = None if spread is None else max(best_k, ceil(spread.high))
    return DraftLengthChoice(
        relative=step_cost.relative,
        options=tuple(
            DraftLengthOption(
                k=k,
                tokens_per_step=float(tokens[place]),
                step_cost=float(costs[place]),
                speed=estimates[f"speed {k}"],
                regret=max(0.0, float(1 - speeds[place] / speeds.max())),
            )
            for place, k in enumerate(ks)
        ),
        best_k=best_k,
        best_k_low=low,
        best_k_high=high,
        estimated=any(0 < k < totals.columns.k for k in ks),
        notes=(
            *_notes(totals, ks, best_k, fastest_k),
            *_notes_on_certainty(low, high),
            *_notes_on_lengths(totals),
            *_notes_on_coverage(totals, plain),
        ),
    )


def _check(totals: Totals) -> None:
    if not totals.columns.k:
        raise ValueError(f"{UNKNOWN_K}, so it is unknown how many tokens a step could have drafted")
    if not totals.count("steps"):
        raise ValueError(NO_STEP)
    if not position_count(totals):
        estimated = totals.count("steps_estimated") or totals.count("accepted_estimated")
        cause = "steps or accepted tokens are only estimated" if estimated else NO_HISTOGRAM
        raise ValueError(f"{cause}, so acceptance by position is unknown")


def _offered(totals: Totals, step_cost: StepCost) -> list[int]:
    """Return every K with a cost whose tokens per step are known."""
    known = np.isfinite(_tokens_per_step(totals, totals.sums))
    ks = [k for k in range(totals.columns.k + 1) if known[k] and step_cost.cost(k) is not None]
    if not ks:
        raise ValueError(
            f"the step cost has no K from 0 to {totals.columns.k}, the recorded one;"
            " expected the cost of at least one"
        )
    return ks


def _tokens_per_step(totals: Totals, sums: FloatArray) -> FloatArray:
    """Return 1 + s_1 + ... + s_k for k from 0 to K, [..., K + 1]."""
    reach = reach_of(sums, totals.columns, estimator_of(totals), totals.columns.k)
    one = np.ones((*sums.shape[:-1], 1))
    return np.cumsum(np.concatenate([one, reach.survival], axis=-1), axis=-1)


def _first_fastest(speeds: FloatArray) -> npt.NDArray[np.intp]:
    """Return the first place along the last axis that is as fast as the fastest."""
    fast = speeds >= speeds.max(axis=-1, keepdims=True) * (1 - TIE)
    first: npt.NDArray[np.intp] = np.argmax(fast, axis=-1)
    return first


def _notes(totals: Totals, ks: Sequence[int], best_k: int, fastest_k: int) -> list[str]:
    recorded = totals.columns.k
    notes = []
    if missing := [k for k in range(recorded + 1) if k not in ks]:
        listed = ", ".join(map(str, missing))
        notes.append(f"left out for want of a step cost or of steps that got as far: K = {listed}")
    if 0 not in ks:
        notes.append("without the cost of a plain step (K = 0) nothing shows whether drafting pays")
    if best_k != fastest_k:
        notes.append(
            f"K = {fastest_k} is faster than K = {best_k} by less than {TIE:.0%}: a tie, which goes"
            " to the smaller"
        )
    if any(0 < k < recorded for k in ks):
        notes.append(
            f"K below {recorded} is an estimate from drafts of up to {recorded}: a drafter set to a"
            " smaller K may adapt, and at K = 1 the first position is usually accepted more often"
            " than the first of a longer draft"
        )
    if fastest_k == recorded:
        notes.append(f"nothing is known beyond the recorded K = {recorded}, which is the fastest")
    return notes


def _notes_on_certainty(low: int | None, high: int | None) -> list[str]:
    if low is None or low == high:
        return []
    return [f"resampling gives any K from {low} to {high} as the best: more answers would tell"]


def _notes_on_lengths(totals: Totals) -> list[str]:
    notes = []
    if estimator_of(totals) == "tail":
        notes.append("draft lengths are unknown, so what was never drafted counts as not accepted")
    elif totals.count("drafted") < totals.columns.k * totals.count("steps"):
        notes.append("some drafts were shorter than K; the speeds are those of full drafts")
    return notes


def _notes_on_coverage(totals: Totals, plain: float | None) -> list[str]:
    undrafted = round(float(undrafted_steps(totals, totals.sums)))
    steps = totals.count("steps")
    if knows_decode_steps(totals):
        about = ""
    elif knows_tokens(totals):
        about = "about "
    else:
        return ["it is unknown how many decode steps had no draft; the speeds are of the others"]
    if not undrafted:
        return []
    share = f"{about}{undrafted / (steps + undrafted):.1%} of decode steps had no draft"
    if plain is None:
        return [f"{share}; the speeds are of the others, for want of the cost of a plain step"]
    return [f"{share}: in the speeds each of them is a plain step and gives one token"]
