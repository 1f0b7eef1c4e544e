"""`outrider report`: everything that an evidence file says."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from outrider.records.evidence_reader import read_evidence
from outrider.report.document import build_document
from outrider.report.formats import FORMATS, report_format

Debug = Annotated[bool, typer.Option("--debug", help="Show the stack trace of a failure.")]


class Output(Console):
    """Standard output; a reader that stops early, as `head` does, is no failure."""

    def __init__(self) -> None:
        super().__init__(file=sys.stdout)

    def on_broken_pipe(self) -> None:
        """Lets go of what is still written; the exit code is that of the command."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def report(
    file: Annotated[Path, typer.Argument(help="An evidence file that `outrider tune` wrote.")],
    format_name: Annotated[
        str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")
    ] = "terminal",
    debug: Debug = False,  # noqa: ARG001  read by main()
) -> None:
    """Print the report of a run again, figure for figure, from its evidence file."""
    write, output = report_format(format_name), Output()
    document = build_document(read_evidence(file))
    try:
        write(document, output)
    except BrokenPipeError:
        output.on_broken_pipe()
