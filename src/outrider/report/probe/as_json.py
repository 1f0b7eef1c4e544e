"""The report on a probe for programs."""

import json
from typing import Any

from rich.console import Console

from outrider.records.probe.outcome import Outcome, Tells
from outrider.records.probe.seen import Metrics
from outrider.records.reading import AcceptanceRecord, Scope
from outrider.report.probe.document import OF_REQUESTS, JudgedRung, ProbeReport
from outrider.report.probe.wording import SCOPES, outcome_name

SCHEMA = "outrider.probe/1"
"""The number rises when a field changes its meaning or goes; new fields leave it."""

_COVERS = {Scope.REQUEST: "request", Scope.INTERVAL: "interval", Scope.SERVER: "cumulative"}


def write_json(report: ProbeReport, console: Console) -> None:
    """Write the report as indented JSON, neither wrapped nor coloured."""
    text = json.dumps(probe_to_json(report), indent=2, ensure_ascii=False, allow_nan=False)
    console.file.write(f"{text}\n")


def probe_to_json(report: ProbeReport) -> dict[str, Any]:
    """Return the report; null is what is unknown, or not told."""
    seen, best = report.seen, report.best
    return {
        "schema": SCHEMA,
        "url": seen.root,
        "engine": seen.engine,
        "version": seen.version,
        "models": None if seen.models is None else list(seen.models),
        "model": seen.model,
        "speculates": seen.speculates,
        "log_stats": seen.log_stats,
        "metrics_page": isinstance(seen.metrics, Metrics),
        "requests_sent": seen.requests_sent,
        "best": best.name if best else None,
        "rungs": [_rung(rung) for rung in report.rungs],
        "next": [{"command": line.command, "gives": line.gives} for line in report.next_lines],
        "more": [{"change": one.change, "gives": one.gives} for one in report.more],
    }


def _rung(rung: JudgedRung) -> dict[str, Any]:
    return {
        "number": rung.number,
        "name": rung.name,
        "title": rung.title,
        "outcome": outcome_name(rung.outcome).replace(" ", "_"),
        **_told(rung.name, rung.outcome),
    }


def _told(name: str, outcome: Outcome) -> dict[str, Any]:
    if not isinstance(outcome, Tells):
        return {"reason": outcome.reason}
    told = {
        "reason": outcome.zero,
        "covers": _COVERS[SCOPES.get(name, Scope.REQUEST)],
        "k": outcome.k,
        "seen": [_record(record) for record in outcome.records],
    }
    if name in OF_REQUESTS:
        told["streamed"] = outcome.streamed
    return told


def _record(record: AcceptanceRecord) -> dict[str, Any]:
    """Return what the probe saw; each count stands beside how it came about."""
    return {
        "engine": record.engine,
        "model": record.tags.get("model"),
        "k": record.k,
        "histogram": _listed(record.histogram),
        "per_step_accepted": _listed(record.per_step_accepted),
        "per_step_drafted": _listed(record.per_step_drafted),
        "steps": record.steps,
        "steps_basis": _basis(record.steps, record.steps_basis),
        "accepted": record.accepted,
        "accepted_basis": _basis(record.accepted, record.accepted_basis),
        "drafted": record.drafted,
        "drafted_basis": _basis(record.drafted, record.drafted_basis),
    }


def _listed(values: Any) -> list[int] | None:
    return None if values is None else list(values)


def _basis(value: int | None, basis: str) -> str | None:
    return None if value is None else basis
