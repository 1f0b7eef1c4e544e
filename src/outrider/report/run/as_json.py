"""The report of a run for programs to read."""

from typing import Any

from pydantic import TypeAdapter

from outrider.report.run.document import ReportDocument

SCHEMA = "outrider.run/1"
"""The number rises when a field changes its meaning or goes; new fields leave it."""


def document_to_json(document: ReportDocument) -> dict[str, Any]:
    """Return the document as JSON values: floats unrounded, None for what cannot be had."""
    return {
        "schema": SCHEMA,
        **TypeAdapter(ReportDocument).dump_python(document, mode="json"),
    }
