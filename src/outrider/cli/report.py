"""`outrider report`: what captured answers, counters, logs and result files say of acceptance."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from outrider.cli.gathering import Asked, check_used, gather
from outrider.cli.options import By, Debug, FormatName, ReportFile, StepCostText, format_of
from outrider.cli.output import FileOutput, Output
from outrider.cli.step_costs import read_step_cost
from outrider.cli.targets import check_alone, check_target
from outrider.errors import BelowThreshold
from outrider.records.collect import usable_jobs
from outrider.records.collecting import Collection
from outrider.records.evidence_reader import read_evidence
from outrider.records.evidence_schema import is_database
from outrider.records.partial import write_partial
from outrider.report.acceptance.as_json import write_run_json
from outrider.report.acceptance.building import build_acceptance_report
from outrider.report.acceptance.document import AcceptanceReport
from outrider.report.acceptance.expected.asked import read_expected
from outrider.report.acceptance.expected.holding import held_against
from outrider.report.acceptance.formats import report_format
from outrider.report.acceptance.gate import run_gate
from outrider.report.run.document import build_document
from outrider.report.run.terminal import write_terminal

Text = str | None


def report(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files, folders, URLs, - for standard input, or a histogram like '[39, 1, 0, 3]'."
        ),
    ] = None,
    by: By = None,
    from_name: Annotated[
        Text, typer.Option("--from", help="Read all sources as this format.  [default: recognised]")
    ] = None,
    before: Annotated[Text, typer.Option(help="A /metrics scrape from before.")] = None,
    after: Annotated[Text, typer.Option(help="One from after: their difference counts.")] = None,
    for_text: Annotated[
        Text, typer.Option("--for", help="Scrape the URL twice, so long apart, e.g. 60s.")
    ] = None,
    step_cost: StepCostText = None,
    format_name: FormatName = None,
    output: ReportFile = None,
    partial: Annotated[
        Path | None, typer.Option(help="Write what was read to this file, to be merged later.")
    ] = None,
    fail_under: Annotated[
        Text, typer.Option(help="Exit with 1 if M is below this number or this JSON report's.")
    ] = None,
    expect: Annotated[
        Text,
        typer.Option(help="The M that was expected, as 5.5,k=7,engine=sglang, or a JSON report."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Processes that read large files.  [default: the cores]")
    ] = None,
    debug: Debug = False,  # noqa: ARG001  read by main()
) -> None:
    """Tell what captured answers, counters, logs and result files say of acceptance.

    One evidence file of `outrider tune` alone, without other options, prints the report of its run
    again, figure for figure.
    """
    format_name = format_of(format_name, output)
    write_report = report_format(format_name)
    cost = None if step_cost is None else read_step_cost(step_cost)
    expected = None if expect is None else read_expected(expect)
    asked = Asked(
        sources=tuple(sources or ()),
        by=tuple(name for names in by or () for name in names.split(",")),
        format_name=from_name,
        before=before,
        after=after,
        interval=for_text,
        jobs=usable_jobs() if jobs is None else jobs,
    )
    for option, target in (("--output", output), ("--partial", partial)):
        check_target(option, target, asked.named)
    if partial:
        given = {
            "--fail-under": fail_under,
            "--step-cost": step_cost,
            "--output": output,
            "--expect": expect,
        }
        check_alone("--partial", [name for name, value in given.items() if value is not None])
    console = FileOutput(output) if output else Output()
    run = (
        None
        if any_given(by, from_name, step_cost, partial, fail_under, expect)
        else _sole_run(asked)
    )
    if run and format_name == "text":
        _write(console, lambda: write_terminal(build_document(read_evidence(run)), console))
        return
    collection = gather(asked)
    if partial:
        write_partial(collection, partial)
        told = f"{collection.used:,} of {collection.read:,} records"
        print(f"outrider: {partial} has {told}", file=sys.stderr)  # noqa: T201
        _check_used(collection)
        return
    found = build_acceptance_report(
        collection,
        sources=asked.named,
        by=asked.by,
        step_cost=cost,
        step_cost_text=step_cost,
    )
    if expected is not None:
        found = held_against(found, expected)
    if run and format_name == "json":
        document = build_document(read_evidence(run))
        _write(console, lambda: write_run_json(found, document, console))
    else:
        _write(console, lambda: write_report(found, console))
    _check_used(collection)
    if fail_under is not None:
        _check_gate(found, fail_under)


def any_given(*options: object) -> bool:
    """Whether any of the options was given."""
    return any(option is not None for option in options)


def _sole_run(asked: Asked) -> Path | None:
    """The evidence file, where nothing but one was named."""
    if len(asked.named) != 1:
        return None
    path = Path(asked.named[0])
    return path if is_database(path) else None


def _write(console: Output | FileOutput, write: Callable[[], None]) -> None:
    try:
        write()
    except BrokenPipeError:
        console.on_broken_pipe()
    if isinstance(console, FileOutput):
        console.save()


def _check_gate(found: AcceptanceReport, fail_under: str) -> None:
    results = run_gate(found, fail_under)
    for result in results:
        print(f"{result.outcome}: {result.line}", file=sys.stderr)  # noqa: T201
    if failed := [result.line for result in results if result.outcome == "fail"]:
        raise BelowThreshold(
            f"{len(failed)} of {len(results)} segments fall short ({failed[0]})",
            "a mean acceptance length that is not below --fail-under",
            "look at the flags of the report, or store a new baseline",
        )


def _check_used(collection: Collection) -> None:
    check_used(
        collection,
        seen="nothing usable",
        expected="at least one that tells of speculation",
        remedy="see docs/report.md for how each engine is made to tell",
    )
