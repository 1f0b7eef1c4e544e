"""The report for people to read, on a terminal or as plain text."""

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from outrider.advice.comparison import OVERALL
from outrider.advice.decision import Verdict
from outrider.advice.wording import describe_arm
from outrider.records.arm import Arm
from outrider.records.divergence import Divergence
from outrider.report.cells import counted, number
from outrider.report.run.audit import LosslessnessAudit
from outrider.report.run.document import ReportDocument
from outrider.report.run.layout import lay_out
from outrider.report.run.tables import (
    ReportTable,
    acceptance_table,
    position_tables,
    speed_table,
    step_table,
)

_INDENT = 2
_BAD = "bold red"
_STYLES = {Verdict.USE: "bold green", Verdict.OFF: "bold yellow", Verdict.INCONCLUSIVE: "bold"}


def write_terminal(document: ReportDocument, console: Console) -> None:
    """Write the document, with the findings and the commands last, where the eye comes to rest."""
    _write_run(document, console)
    _write_audit(document.audit, console)
    for table in (acceptance_table(document), *position_tables(document), step_table(document)):
        _write_table(table, document, console)
    _write_table(speed_table(document), document, console, first=_output_lengths(document))
    _write_pairs(
        "Definitions", ((entry.symbol, entry.meaning) for entry in document.definitions), console
    )
    _write_findings(document, console)
    _write_deployments(document, console)


def _write_run(document: ReportDocument, console: Console) -> None:
    settings = document.settings
    _write_heading(f"Outrider: {settings.model}", console)
    if document.smoke:
        _write_line(
            "Smoke run: it shows that everything works; its figures decide nothing.", console
        )
    if not document.complete:
        _write_line(
            f"Incomplete: {document.finished_requests:,} of {document.planned_requests:,} requests"
            " measured; outrider tune --resume continues it.",
            console,
            style="bold yellow",
        )
    for warning in document.warnings:
        _write_line(f"Warning: {warning}", console, style="yellow")
    _write_pairs("Run", _describe_run(document), console)
    _write_pairs("Arms", ((arm.name, _describe_settings(arm)) for arm in settings.arms), console)


def _describe_run(document: ReportDocument) -> Iterator[tuple[str, str]]:
    settings, environment = document.settings, document.environments[0]
    model = environment.model
    yield "model", f"{model.hub_id or model.name}, {model.parameters:,} parameters in {model.dtype}"
    yield "weights", f"{model.source}, SHA-256 {model.sha256[:12]}…"
    workload = (
        f"{settings.workload}: {counted(document.comparison.segments[0].prompts, 'prompt')}, each"
        f" {counted(settings.repeats, 'time')} per arm; temperature {settings.temperature:g},"
        f" seed {settings.seed}"
    )
    yield "workload", workload
    yield "requests", f"{document.finished_requests:,} of {document.planned_requests:,} finished"
    machine = (
        f"{environment.cpu}, {counted(environment.threads, 'thread')};"
        f" {', '.join(environment.gpus) or 'no GPU'}; {environment.os}"
    )
    yield "machine", machine
    versions = (f"{name} {version}" for name, version in environment.versions.items() if version)
    yield "software", ", ".join((environment.backend, f"Python {environment.python}", *versions))


def _describe_settings(arm: Arm) -> str:
    parts = [describe_arm(arm)]
    if arm.prompt_lookup_min is not None and arm.prompt_lookup_max is not None:
        parts.append(f"prompt lookup of {arm.prompt_lookup_min} to {arm.prompt_lookup_max} tokens")
    if arm.ngram_tie is not None:
        parts.append(f"the {'most recent' if arm.ngram_tie == 'recent' else 'earliest'} match")
    if arm.ngram_fill:
        parts.append("drafts filled up to K")
    return ", ".join(parts)


def _write_audit(audit: LosslessnessAudit | None, console: Console) -> None:
    _write_heading("Losslessness", console)
    if audit is None:
        _write_line("Not audited: above temperature 0 outputs may differ.", console)
        return
    if audit.wrong_arms:
        _write_line(
            f"REAL DIVERGENCE: {', '.join(sorted(audit.wrong_arms))} changed the output where the"
            " target was not near a tie. This is a bug; no arm with it is ever advised.",
            console,
            style=_BAD,
        )
    _write_line(
        f"{audit.identical_pairs:,} of {audit.pairs:,} outputs equal those of no speculation, token"
        f" for token ({', '.join(audit.arms)}; {audit.tokens:,} tokens compared).",
        console,
        style="green" if audit.identical_pairs == audit.pairs > 0 else "",
    )
    if audit.unclassified_pairs:
        _write_line(
            f"{audit.unclassified_pairs:,} outputs differ that have not been classed as near-tie"
            " or real; resume the run to class them.",
            console,
            style="bold yellow",
        )
    if audit.divergences:
        console.print(
            Padding(_divergence_table(audit.divergences), (0, 0, 0, _INDENT), expand=False)
        )


def _divergence_table(divergences: Iterable[Divergence]) -> Table:
    """List the divergences; the repeats of a prompt that diverge alike share a row."""
    repeats: dict[tuple[str, ...], list[str]] = {}
    for found in divergences:
        row: tuple[str, ...] = (
            found.kind,
            found.arm,
            found.prompt_id,
            str(found.position),
            _token(found.expected_token_id),
            _token(found.actual_token_id),
            number(found.top2_gap, 3),
        )
        repeats.setdefault(row, []).append(str(found.repeat))
    table = Table(box=None, pad_edge=False)
    for heading in ("", "arm", "prompt", "position", "expected", "got", "top-2 gap", "repeats"):
        table.add_column(Text(heading, style="dim"))
    for row, which in repeats.items():
        table.add_row(*map(Text, (*row, ", ".join(which))), style=_BAD if row[0] == "real" else "")
    return table


def _token(token_id: int | None) -> str:
    return "end" if token_id is None else str(token_id)


def _output_lengths(document: ReportDocument) -> str:
    different = [
        f"{pair.arm} {pair.output_tokens:,} tokens against {pair.against_output_tokens:,}"
        f" ({pair.pairs - pair.equal_length_pairs:,} of {pair.pairs:,} pairs)"
        for pair in document.comparison.segments[0].against_baseline
        if pair.equal_length_pairs < pair.pairs
    ]
    if different:
        return f"Output lengths differ from no speculation: {'; '.join(different)}."
    return "Output lengths are equal in all pairs of an arm and no speculation."


def _write_table(
    table: ReportTable, document: ReportDocument, console: Console, first: str = ""
) -> None:
    _write_heading(f"{table.title}{' (smoke run)' if document.smoke else ''}", console)
    if first:
        _write_line(first, console)
    laid_out = lay_out(table, console, console.width - _INDENT, smoke=document.smoke)
    console.print(Padding(laid_out, (0, 0, 0, _INDENT), expand=False))
    for footnote in table.footnotes:
        _write_line(footnote, console, style="dim")


def _write_findings(document: ReportDocument, console: Console) -> None:
    _write_heading("Findings", console)
    if document.comparison.wrong_arms:
        _write_line(
            f"{', '.join(document.comparison.wrong_arms)} changed the output (see Losslessness), so"
            " no finding advises it.",
            console,
            style=_BAD,
        )
    for finding in document.findings:
        title = Text(f"  {finding.segment}: ", style="bold")
        title.append(finding.verdict, style=_STYLES[finding.verdict])
        if finding.arm:
            title.append(f" {finding.arm}", style="bold")
        console.print(title.append(" (smoke)" if document.smoke else ""))
        console.print(Padding(Text(finding.text), (0, 0, 0, 2 * _INDENT), expand=False))


def _write_deployments(document: ReportDocument, console: Console) -> None:
    _write_heading("Deploy", console)
    for deployment in document.deployments:
        prompts = "all prompts" if deployment.segment == OVERALL else f"{deployment.segment} alone"
        _write_command(
            f"For {prompts}, {deployment.arm or 'no speculation'}:",
            deployment.commands.deploy,
            console,
        )
    _write_command("To roll back:", document.deployments[0].commands.rollback, console)
    caveats = (caveat for entry in document.deployments for caveat in entry.commands.caveats)
    for caveat in dict.fromkeys(caveats):
        _write_line(caveat, console, style="dim")


def _write_command(label: str, command: str, console: Console) -> None:
    _write_line(label, console)
    # Left to the terminal to wrap, the command can be copied whole.
    console.print(Text(f"    {command}"), soft_wrap=True)


def _write_pairs(title: str, pairs: Iterable[tuple[str, str]], console: Console) -> None:
    _write_heading(title, console)
    grid = Table.grid(padding=(0, 2))
    for name, what in pairs:
        grid.add_row(Text(name), Text(what), style="dim")
    console.print(Padding(grid, (0, 0, 0, _INDENT), expand=False))


def _write_heading(title: str, console: Console) -> None:
    console.print()
    console.print(Text(title, style="bold"))


def _write_line(line: str, console: Console, style: str = "") -> None:
    console.print(Padding(Text(line, style=style), (0, 0, 0, _INDENT), expand=False))
