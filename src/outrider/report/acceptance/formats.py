"""The forms that a report on acceptance can be had in, by name."""

from collections.abc import Callable

from rich.console import Console

from outrider.errors import InvalidSetting
from outrider.report.acceptance.as_json import write_json
from outrider.report.acceptance.document import AcceptanceReport
from outrider.report.acceptance.html.page import write_html
from outrider.report.acceptance.markdown import write_markdown
from outrider.report.acceptance.text import write_text

Write = Callable[[AcceptanceReport, Console], None]

FORMATS: dict[str, Write] = {
    "text": write_text,
    "md": write_markdown,
    "json": write_json,
    "html": write_html,
}


def report_format(name: str) -> Write:
    """Return what writes a report to a console in the format `name`, or raise InvalidSetting."""
    if name not in FORMATS:
        raise InvalidSetting(
            f"report format {name!r}",
            f"one of {', '.join(FORMATS)}",
            f"use --format {next(iter(FORMATS))}",
        )
    return FORMATS[name]
