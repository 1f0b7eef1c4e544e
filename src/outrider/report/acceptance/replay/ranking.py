"""From the sums of a replay to its settings side by side, the best first."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from outrider.acceptance.draft_length import TIE
from outrider.acceptance.estimate import estimate
from outrider.acceptance.intervals import FloatArray
from outrider.acceptance.segment_estimates import FEWEST_RECORDS
from outrider.acceptance.step_cost import StepCost
from outrider.acceptance.totals import Totals
from outrider.advice.deployment import speculative_flags
from outrider.records.collecting import Collection
from outrider.report.acceptance.grouping import Grouping, SegmentKey
from outrider.report.acceptance.replay.findings import (
    ReplayFindings,
    SegmentChoice,
    SettingAtK,
)

ServerKeys = Mapping[str, Mapping[str, int | float | str]]
"""A setting's own keys under vLLM's names, by its name."""

_DRAWS = 2000
_NO_STEP = "there is no decode step"
_NO_DRAFT = "no step had a draft"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """The sums of one setting at one K, with its speed (without a cost: M̂) to rank it by."""

    setting: str
    method: str
    totals: Totals
    worth: float


def find_replay(
    collection: Collection,
    *,
    by: Sequence[str],
    step_cost: StepCost | None,
    server_keys: ServerKeys,
    caveats: Sequence[str],
    seed: int = 0,
) -> ReplayFindings | None:
    """Compare the settings of a replay, for all answers and by the segment keys `by`.

    None where nothing was replayed. The same sums and seed always give the same figures.
    """
    weighing = _Weighing(step_cost, server_keys, seed)
    grouping = Grouping(collection)
    ranked = weighing.ranked(grouping.by(()))
    if not ranked:
        return None
    choice = weighing.choice("", ranked)
    parts: dict[str, dict[SegmentKey, Totals]] = {}
    for key, totals in grouping.by(by).items() if by else ():
        parts.setdefault(_segment_name(key, by), {})[key] = totals
    segments = tuple(weighing.choice(name, weighing.ranked(of)) for name, of in parts.items())
    return ReplayFindings(
        settings=tuple(weighing.described(each) for each in ranked),
        choice=choice,
        segments=segments if len(segments) > 1 else (),
        replayed_k=tuple(sorted({key[2] for key in collection.cells})),
        relative=None if step_cost is None else step_cost.relative,
        caveats=tuple(caveats),
    )


@dataclass(frozen=True, slots=True)
class _Weighing:
    step_cost: StepCost | None
    server_keys: ServerKeys
    seed: int

    def ranked(self, groups: Mapping[SegmentKey, Totals]) -> list[_Candidate]:
        """Return each setting at its best K, the best first; ties keep the order of settings."""
        by_setting: dict[str, list[_Candidate]] = {}
        merged: dict[tuple[str, str, int], Totals] = {}
        for key, totals in groups.items():
            told = dict(key)
            name = (str(told["drafter"]), str(told["method"]), totals.columns.k)
            merged[name] = merged[name].merged(totals) if name in merged else totals
        for (setting, method, _), totals in merged.items():
            worth = self._worth(totals, totals.sums)
            if np.isfinite(worth):
                candidate = _Candidate(setting, method, totals, float(worth))
                by_setting.setdefault(setting, []).append(candidate)
        best = [_smallest_of_the_best(each) for each in by_setting.values()]
        return sorted(best, key=lambda each: -each.worth)

    def choice(self, segment: str, ranked: Sequence[_Candidate]) -> SegmentChoice:
        # A gain that is a tie goes to the smaller K, whichever setting has it.
        most = _smallest_of_the_best(ranked)
        best = self.described(most)
        pays = _pays(most, best)
        flags = speculative_flags(best.method, best.k, self.server_keys[best.setting])
        return SegmentChoice(segment, best, pays, None if pays is False else shlex.join(flags))

    def described(self, candidate: _Candidate) -> SettingAtK:
        totals = candidate.totals

        def figures(sums: FloatArray) -> dict[str, FloatArray]:
            steps, decode = _column(totals, sums, "steps"), _column(totals, sums, "decode_steps")
            accepted = _column(totals, sums, "accepted")
            with np.errstate(divide="ignore", invalid="ignore"):
                return {
                    "tokens per step": _decoded(totals, sums) / decode,
                    "mean": 1 + accepted / steps,
                    "coverage": steps / decode,
                    "rate": accepted / _column(totals, sums, "drafted"),
                    **self._speeds(totals, sums),
                }

        names = figures(totals.sums)
        found = estimate(
            totals.rows,
            figures,
            {name: _NO_DRAFT if name in ("mean", "rate") else _NO_STEP for name in names},
            rng=np.random.default_rng(self.seed),
            draws=_DRAWS,
            unit="requests",
            alone="a single request gives no interval",
            fewest=FEWEST_RECORDS,
        )
        return SettingAtK(
            setting=candidate.setting,
            method=candidate.method,
            k=totals.columns.k,
            answers=totals.count("requests"),
            decode_steps=totals.count("decode_steps"),
            tokens_per_step=found["tokens per step"],
            mean_acceptance_length=found["mean"],
            coverage=found["coverage"],
            draft_acceptance_rate=found["rate"],
            speed=found.get("speed"),
            speed_up=found.get("speed-up"),
        )

    def _worth(self, totals: Totals, sums: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.step_cost is None:
                decode_steps = _column(totals, sums, "decode_steps")
                worth: FloatArray = _decoded(totals, sums) / decode_steps
                return worth
            return self._speeds(totals, sums).get("speed", np.array(np.nan))

    def _speeds(self, totals: Totals, sums: FloatArray) -> dict[str, FloatArray]:
        """Return the speed and the speed-up where both costs are known; a plain step gives one."""
        if self.step_cost is None:
            return {}
        cost, plain = self.step_cost.cost(totals.columns.k), self.step_cost.cost(0)
        if cost is None or plain is None:
            return {}
        steps = _column(totals, sums, "steps")
        undrafted = _column(totals, sums, "decode_steps") - steps
        speed = _decoded(totals, sums) / (steps * cost + undrafted * plain)
        scale = 1 if self.step_cost.relative else 1e3
        return {"speed": scale * speed, "speed-up": plain * speed}


def _pays(candidate: _Candidate, best: SettingAtK) -> bool | None:
    gain = best.speed_up
    if gain is None or gain.value is None:
        # Where no drafted token was accepted, no cost of a step can make it pay.
        return None if candidate.totals.count("accepted") > 0 else False
    low = gain.value if gain.interval is None else gain.interval.low
    return low > 1 and gain.value > 1 + TIE


def _smallest_of_the_best(candidates: Sequence[_Candidate]) -> _Candidate:
    """Return the one of the smallest K, then of the most worth, among those that tie for best."""
    most = max(each.worth for each in candidates)
    tied = [each for each in candidates if each.worth >= most * (1 - TIE)]
    return min(tied, key=lambda each: (each.totals.columns.k, -each.worth))


def _column(totals: Totals, sums: FloatArray, name: str) -> FloatArray:
    column: FloatArray = sums[..., totals.columns[name]]
    return column


def _decoded(totals: Totals, sums: FloatArray) -> FloatArray:
    """Tokens that decode steps gave: all but the first of each answer, which the prefill gave."""
    return _column(totals, sums, "completion_tokens") - _column(totals, sums, "records")


def _segment_name(key: SegmentKey, by: Sequence[str]) -> str:
    told = dict(key)
    return ", ".join(
        f"{name.replace('_', ' ')} {'unknown' if told[name] is None else told[name]}" for name in by
    )
