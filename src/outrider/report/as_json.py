"""The report for programs to read."""

import json
from typing import Any

from pydantic import TypeAdapter
from rich.console import Console

from outrider.report.document import ReportDocument

SCHEMA = {"name": "outrider.report", "version": 1}
"""The version rises when a field changes its meaning or goes; new fields leave it."""


def document_to_json(document: ReportDocument) -> dict[str, Any]:
    """Return the document as JSON values: floats unrounded, None for what cannot be had."""
    return {
        "schema": SCHEMA,
        **TypeAdapter(ReportDocument).dump_python(document, mode="json"),
    }


def write_json(document: ReportDocument, console: Console) -> None:
    """Write the document as indented JSON, neither wrapped nor coloured."""
    text = json.dumps(document_to_json(document), indent=2, ensure_ascii=False, allow_nan=False)
    console.file.write(f"{text}\n")
