"""The acceptance report for programs to read."""

import json
from typing import Any

from pydantic import TypeAdapter
from rich.console import Console

from outrider.acceptance.cadence import NO_GAPS, CadenceFigures
from outrider.acceptance.estimate import Estimate
from outrider.report.acceptance.document import AcceptanceReport, SegmentReport
from outrider.report.run.as_json import document_to_json
from outrider.report.run.document import ReportDocument

SCHEMA = "outrider.report/1"
"""The number rises when a field changes its meaning or goes; new fields leave it."""


def write_json(report: AcceptanceReport, console: Console) -> None:
    """Write the report as indented JSON, neither wrapped nor coloured."""
    _write(report_to_json(report), console)


def write_run_json(report: AcceptanceReport, run: ReportDocument, console: Console) -> None:
    """Write the report on a run's evidence file with all that the run itself found, as `run`."""
    _write({**report_to_json(report), "run": document_to_json(run)}, console)


def _write(content: dict[str, Any], console: Console) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    console.file.write(f"{text}\n")


def report_to_json(report: AcceptanceReport) -> dict[str, Any]:
    """Return the report as JSON values: floats unrounded, None for what is unknown."""
    return {
        "schema": SCHEMA,
        "sources": list(report.sources),
        "verdict": report.verdict,
        "segments": [_segment(segment) for segment in report.segments],
        "whole": [_segment(segment) for segment in report.whole],
        "pooled": None if report.pooled is None else _segment(report.pooled),
        "pooled_refused": report.pooled_refused,
        "split": None if report.split is None else _plain(report.split),
        "records": {
            "read": report.records.read,
            "used": report.records.used,
            "no_metrics": report.records.no_metrics,
            "bad_count": report.records.bad_count,
            "bad": [_plain(entry) for entry in report.records.bad],
            "verdict_withheld": report.records.verdict_withheld,
        },
        "step_cost": report.step_cost,
        "notes": list(report.notes),
        **({} if report.replay is None else {"replay": _plain(report.replay)}),
    }


def _segment(segment: SegmentReport) -> dict[str, Any]:
    figures = segment.figures
    choice = segment.draft_length
    return {
        "name": segment.name,
        "segment": dict(segment.values),
        "also": {name: list(values) for name, values in segment.also.items()},
        "k": figures.k,
        "records": figures.records,
        "requests": figures.requests,
        "clusters": figures.clusters,
        "steps": figures.steps,
        "steps_estimated": figures.steps_estimated,
        "drafted": figures.drafted,
        "drafted_nominal": figures.drafted_nominal,
        "accepted": figures.accepted,
        "accepted_estimated": figures.accepted_estimated,
        "histogram": None if figures.histogram is None else list(figures.histogram),
        **_estimate("mean_acceptance_length", figures.mean_acceptance_length),
        **_estimate("mean_acceptance_length_by_request", figures.mean_acceptance_length_by_request),
        **_estimate("draft_acceptance_rate", figures.draft_acceptance_rate),
        "wasted": figures.wasted,
        **_estimate("immediate_failure_rate", figures.immediate_failure_rate),
        **_estimate("full_draft_rate", figures.full_draft_rate),
        "survival": [position.survival.value for position in figures.positions],
        "survival_ci": [_ends(position.survival) for position in figures.positions],
        "conditional_survival": [position.conditional.value for position in figures.positions],
        "conditional_survival_ci": [_ends(position.conditional) for position in figures.positions],
        "naive_survival": [position.naive.value for position in figures.positions],
        "at_risk": [position.at_risk for position in figures.positions],
        "survival_estimator": figures.survival_estimator,
        "largest_position": figures.largest_position,
        **_estimate("coverage", figures.coverage),
        "marginal": [position.marginal for position in figures.positions],
        "by_output_position": [
            {
                "start": band.start,
                "end": band.end,
                "steps": band.steps,
                **_estimate("mean_acceptance_length", band.mean_acceptance_length),
            }
            for band in figures.bands
        ],
        "completion_tokens": figures.completion_tokens,
        "explained_tokens": figures.explained_tokens,
        "tokens_per_chunk": figures.tokens_per_chunk,
        **_cadence(figures.cadence),
        "cached_share": figures.cached_share,
        "repetitive_share": figures.repetitive_share,
        "best_k": None if choice is None else choice.best_k,
        "best_k_reason": segment.draft_length_reason,
        "draft_lengths": None if choice is None else _plain(choice),
        "flags": [_plain(flag) for flag in segment.flags],
        "reconciliation": [_plain(identity) for identity in segment.reconciliation],
        "expected": None if segment.expected is None else _plain(segment.expected),
    }


def _cadence(cadence: CadenceFigures | None) -> dict[str, Any]:
    unknown = Estimate.missing(NO_GAPS)
    return {
        "gaps": None if cadence is None else cadence.gaps,
        "gap_answers": None if cadence is None else cadence.answers,
        **_estimate("mean_gap_ms", unknown if cadence is None else cadence.mean_gap_ms),
        **_estimate("gap_cv", unknown if cadence is None else cadence.gap_cv),
        "longest_gap_ms": None if cadence is None else cadence.longest_gap_ms,
    }


def _plain(value: object) -> Any:
    return TypeAdapter(type(value)).dump_python(value, mode="json")


def _estimate(name: str, figure: Estimate) -> dict[str, Any]:
    """Return the figure under its name, its interval under name_ci, and why either is missing."""
    fields: dict[str, Any] = {name: figure.value, f"{name}_ci": _ends(figure)}
    if figure.reason is not None:
        fields[f"{name}_reason"] = figure.reason
    return fields


def _ends(figure: Estimate) -> list[float] | None:
    return None if figure.interval is None else [figure.interval.low, figure.interval.high]
