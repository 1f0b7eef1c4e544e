"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from outrider.report.acceptance.formats import FORMATS

Debug = Annotated[bool, typer.Option("--debug", help="Show the stack trace of a failure.")]
By = Annotated[
    list[str] | None,
    typer.Option("--by", help="Make segments of this key; repeatable.  [default: found]"),
]
StepCostText = Annotated[
    str | None,
    typer.Option(help="What a step costs by K: base,per_token; 0:12ms,1:13ms,...; or a CSV file."),
]
FormatName = Annotated[
    str | None,
    typer.Option(
        "--format",
        help=f"One of {', '.join(FORMATS)}.  [default: by the name of --output, else text]",
    ),
]
ReportFile = Annotated[
    Path | None, typer.Option(help="File to write the report to.  [default: standard output]")
]


def format_of(name: str | None, output: Path | None) -> str:
    """Return the report's format: `name`, else what `output` ends in, else text."""
    if name is not None:
        return name
    suffix = output.suffix.removeprefix(".") if output else ""
    return suffix if suffix in FORMATS else "text"
