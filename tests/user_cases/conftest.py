"""Cases that people have reported in public, with the values that a right tool gives for them.

Each test has the number of its case in the project's collection of reports. Those about the engine
are tested with it.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.user_cases.reading import Reporter, collect

from outrider.acceptance.step_cost import StepCost
from outrider.report.acceptance.building import build_acceptance_report
from outrider.report.acceptance.document import AcceptanceReport


@pytest.fixture
def report(tmp_path: Path) -> Reporter:
    """Reports on files with these contents, text as it is and all else as JSON."""

    def of(*contents: Any, step_cost: StepCost | None = None) -> AcceptanceReport:
        names = []
        for place, content in enumerate(contents):
            path = tmp_path / f"source-{place:02}"
            text = content if isinstance(content, str) else json.dumps(content)
            path.write_text(text, encoding="utf-8")
            names.append(str(path))
        return build_acceptance_report(collect(*names), sources=names, step_cost=step_cost)

    return of
