"""Every form of the report is to be had by its name."""

from io import StringIO

import pytest
from rich.console import Console
from tests.report.acceptance.samples import SAMPLES

from outrider.errors import InvalidSetting
from outrider.report.acceptance.formats import FORMATS, report_format


def test_the_first_format_is_for_people_at_a_terminal() -> None:
    assert list(FORMATS) == ["text", "md", "json", "html"]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", SAMPLES)
def test_every_form_writes_every_report(form: str, name: str) -> None:
    file = StringIO()

    report_format(form)(SAMPLES[name](), Console(file=file, width=100))

    assert len(file.getvalue()) > 1000


def test_an_unknown_format_is_answered_with_those_there_are() -> None:
    with pytest.raises(InvalidSetting, match="text, md, json, html"):
        report_format("pdf")
