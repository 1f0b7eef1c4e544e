"""A report as its text shows it."""

from io import StringIO

from rich.console import Console

from outrider.report.acceptance.document import AcceptanceReport
from outrider.report.acceptance.text import write_text


def render(report: AcceptanceReport, width: int = 100, *, terminal: bool = False) -> str:
    file = StringIO()
    console = Console(
        file=file,
        width=width,
        force_terminal=terminal or None,
        color_system="standard" if terminal else "auto",
        no_color=False,
    )
    write_text(report, console)
    return file.getvalue()


def flat(text: str) -> str:
    return " ".join(text.split())
