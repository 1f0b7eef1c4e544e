"""Builds the report on a replay: the settings side by side, then each as if it had run."""

from collections.abc import Collection as Collection_
from collections.abc import Sequence
from dataclasses import replace

from outrider.acceptance.step_cost import StepCost
from outrider.errors import InvalidSetting, NothingUsable
from outrider.records.collecting import Collection
from outrider.report.acceptance.building import build_acceptance_report
from outrider.report.acceptance.document import AcceptanceReport, SegmentReport
from outrider.report.acceptance.replay.findings import ReplayFindings
from outrider.report.acceptance.replay.ranking import ServerKeys, find_replay
from outrider.report.acceptance.replay.telling import verdict_of

_AT_BEST_K = (
    "Below, each setting is shown at its best K, {ks} among {all}; --format json has all of them."
)


def build_replay_report(
    collection: Collection,
    *,
    sources: Sequence[str],
    by: Sequence[str],
    step_cost: StepCost | None,
    step_cost_text: str | None,
    server_keys: ServerKeys,
    caveats: Sequence[str],
    every_k: bool,
) -> AcceptanceReport:
    """Build the report; its segments are of every K that was replayed, or of the best ones only.

    Raises InvalidSetting for a step cost without that of a plain step or of any K that was
    replayed, NothingUsable for a log without a decode step.
    """
    _check_cost(step_cost, step_cost_text, {key[2] for key in collection.cells})

    def findings_by(names: Sequence[str]) -> ReplayFindings:
        found = find_replay(
            collection, by=names, step_cost=step_cost, server_keys=server_keys, caveats=caveats
        )
        if found is None:
            raise NothingUsable(
                "no decode step: each answer is of one token, which comes from the prefill",
                "at least one answer of two tokens or more",
                "replay another log",
            )
        return found

    best = findings_by(())
    shown = collection if every_k else _at_best_k(collection, best)
    report = build_acceptance_report(shown, sources=sources, by=by)
    split = () if report.split is None or report.split.key is None else (report.split.key,)
    findings = findings_by(by or split)
    return replace(
        report,
        verdict=report.verdict if report.records.verdict_withheld else verdict_of(findings),
        segments=tuple(map(_as_replayed, report.segments)),
        whole=tuple(map(_as_replayed, report.whole)),
        pooled=None if report.pooled is None else _as_replayed(report.pooled),
        step_cost=step_cost_text,
        notes=(*report.notes, *(() if every_k else _note(findings))),
        replay=findings,
    )


def _check_cost(step_cost: StepCost | None, text: str | None, ks: Collection_[int]) -> None:
    if step_cost is None:
        return
    if step_cost.cost(0) is None:
        raise InvalidSetting(
            f"--step-cost {text} without the cost of K = 0, a plain step",
            "that and the cost of at least one K that is replayed",
            "add it, as 0:12ms",
        )
    if all(step_cost.cost(k) is None for k in ks):
        raise InvalidSetting(
            f"--step-cost {text} without the cost of any K that is replayed",
            f"that of at least one of K = {', '.join(map(str, sorted(ks)))}",
            "add it, or choose another --k",
        )


def _at_best_k(collection: Collection, findings: ReplayFindings) -> Collection:
    place = collection.keys.index("drafter")
    best = {(each.setting, each.k) for each in findings.settings}
    cells = {
        key: totals for key, totals in collection.cells.items() if (key[3][place], key[2]) in best
    }
    return replace(collection, cells=cells)


def _as_replayed(segment: SegmentReport) -> SegmentReport:
    # What a K is worth was replayed at that K, and need not be worked out from a longer one; and
    # a lookup that finds nothing is no fault, but what the coverage of each setting tells.
    flags = tuple(flag for flag in segment.flags if flag.code != "low_coverage")
    return replace(segment, flags=flags, draft_length=None, draft_length_reason=None)


def _note(findings: ReplayFindings) -> tuple[str, ...]:
    ks = findings.replayed_k
    if len(ks) == 1:
        return ()
    best = ", ".join(str(k) for k in sorted({each.k for each in findings.settings}))
    return (_AT_BEST_K.format(ks=f"K = {best}", all=f"{ks[0]} to {ks[-1]}"),)
