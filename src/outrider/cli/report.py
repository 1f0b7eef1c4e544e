"""`outrider report`: everything that an evidence file says."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from outrider.records.evidence_reader import read_evidence
from outrider.report.document import build_document
from outrider.report.formats import FORMATS, report_format

Debug = Annotated[bool, typer.Option("--debug", help="Show the stack trace of a failure.")]


def report(
    file: Annotated[Path, typer.Argument(help="An evidence file that `outrider tune` wrote.")],
    format_name: Annotated[
        str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")
    ] = "terminal",
    debug: Debug = False,  # noqa: ARG001  read by main()
) -> None:
    """Print the report of a run again, figure for figure, from its evidence file."""
    write = report_format(format_name)
    write(build_document(read_evidence(file)), Console(file=sys.stdout))
