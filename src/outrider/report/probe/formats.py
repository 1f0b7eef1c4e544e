"""The forms that a report on a probe can be had in, by name."""

from collections.abc import Callable

from rich.console import Console

from outrider.errors import InvalidSetting
from outrider.report.probe.as_json import write_json
from outrider.report.probe.document import ProbeReport
from outrider.report.probe.text import write_text

Write = Callable[[ProbeReport, Console], None]

FORMATS: dict[str, Write] = {"text": write_text, "json": write_json}


def probe_format(name: str) -> Write:
    """Return what writes a probe to a console in the format `name`, or raise InvalidSetting."""
    if name not in FORMATS:
        raise InvalidSetting(
            f"report format {name!r}", f"one of {', '.join(FORMATS)}", "use --format text"
        )
    return FORMATS[name]
