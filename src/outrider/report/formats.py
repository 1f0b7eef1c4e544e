"""The forms that a report can be had in, by name."""

from collections.abc import Callable

from rich.console import Console

from outrider.errors import InvalidSetting
from outrider.report.as_json import write_json
from outrider.report.document import ReportDocument
from outrider.report.terminal import write_terminal

Write = Callable[[ReportDocument, Console], None]

FORMATS: dict[str, Write] = {"terminal": write_terminal, "json": write_json}


def report_format(name: str) -> Write:
    """Return what writes a document to a console in the format `name`, or raise InvalidSetting."""
    if name not in FORMATS:
        raise InvalidSetting(
            f"report format {name!r}",
            f"one of {', '.join(FORMATS)}",
            f"use --format {next(iter(FORMATS))}",
        )
    return FORMATS[name]
