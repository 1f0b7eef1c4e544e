"""Everything that a report says, whatever form it is read in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from outrider.advice.arm_summary import ArmSummary
from outrider.advice.comparison import Comparison, compare
from outrider.advice.deployment import DeployCommands, deploy_commands
from outrider.advice.finding import Finding, find
from outrider.records.arm import BASELINE
from outrider.records.environment import Environment
from outrider.records.evidence import Evidence
from outrider.records.run import RunSettings
from outrider.report.definitions import DEFINITIONS, Definition
from outrider.report.run.audit import LosslessnessAudit, audit_outputs

DRAFTING_DOMINATES = 0.5
"""The share of a decode step that drafting may take before the report warns of it."""

_BOOTSTRAP = 0xB007
"""Sets the draws of the intervals apart from all else that the run's seed decides."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """The commands for the requests of `segment`; `arm` None deploys no speculation."""

    segment: str
    arm: str | None
    commands: DeployCommands


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """The report of one run, made of its evidence and of nothing else.

    A `smoke` run only shows that everything works. An incomplete one finished fewer measured
    requests than were planned. `audit` is None above temperature 0, where outputs may differ.
    `findings` and the segments of `comparison` are in the same order, all prompts first.
    `deployments` has the overall one and then every prompt kind that asks for another arm.
    """

    smoke: bool
    complete: bool
    finished_requests: int
    planned_requests: int
    settings: RunSettings
    environments: tuple[Environment, ...]
    audit: LosslessnessAudit | None
    warnings: tuple[str, ...]
    comparison: Comparison
    findings: tuple[Finding, ...]
    deployments: tuple[Deployment, ...]
    definitions: tuple[Definition, ...]


def build_document(evidence: Evidence) -> ReportDocument:
    """Build the report; the same evidence always gives the same numbers, intervals included."""
    settings = evidence.settings
    measured = evidence.measured
    audit = (
        audit_outputs(settings.arms, measured, evidence.divergences)
        if settings.temperature == 0
        else None
    )
    comparison = compare(
        measured,
        settings.arms,
        {prompt.prompt_id: prompt.kind for prompt in evidence.prompts},
        wrong_arms=audit.wrong_arms if audit else (),
        rng=np.random.default_rng((settings.seed, _BOOTSTRAP)),
    )
    findings = find(comparison, smoke=settings.smoke)
    return ReportDocument(
        smoke=settings.smoke,
        complete=evidence.complete,
        finished_requests=len(measured),
        planned_requests=len(settings.arms) * len(evidence.prompts) * settings.repeats,
        settings=settings,
        environments=evidence.environments,
        audit=audit,
        warnings=(
            *_session_warnings(evidence.environments),
            *_drafting_warnings(comparison.segments[0].summaries),
        ),
        comparison=comparison,
        findings=findings,
        deployments=_deployments(evidence, findings),
        definitions=DEFINITIONS,
    )


def _deployments(evidence: Evidence, findings: Sequence[Finding]) -> tuple[Deployment, ...]:
    weights, given = evidence.environments[0].model, evidence.settings.model
    arms = {arm.name: arm for arm in evidence.settings.arms}
    overall, *kinds = findings
    wanted = [overall, *(kind for kind in kinds if kind.arm and kind.arm != overall.arm)]
    return tuple(
        Deployment(
            segment=finding.segment,
            arm=finding.arm,
            commands=deploy_commands(
                arms[finding.arm] if finding.arm else BASELINE, weights, given
            ),
        )
        for finding in wanted
    )


def _session_warnings(environments: Sequence[Environment]) -> Iterator[str]:
    first, *others = environments
    different = [
        field.name.replace("_", " ")
        for field in fields(Environment)
        if field.name != "started_at"
        and any(getattr(other, field.name) != getattr(first, field.name) for other in others)
    ]
    if different:
        yield (
            f"The run's {len(environments)} sessions differ in {', '.join(different)}: times of"
            " one are not those of the other."
        )


def _drafting_warnings(summaries: Sequence[ArmSummary]) -> Iterator[str]:
    for summary in summaries:
        draft_ms, step_ms = summary.draft_ms.value, summary.step_ms.value
        if draft_ms and step_ms and draft_ms > DRAFTING_DOMINATES * step_ms:
            yield (
                f"Drafting dominates the steps of {summary.arm}: {draft_ms:.2f} of"
                f" {step_ms:.2f} ms."
            )
