import pytest

from outrider.errors import InvalidSetting
from outrider.report.as_json import write_json
from outrider.report.formats import report_format
from outrider.report.terminal import write_terminal


def test_formats_are_found_by_name() -> None:
    assert report_format("terminal") is write_terminal
    assert report_format("json") is write_json


def test_an_unknown_format_names_those_there_are() -> None:
    with pytest.raises(InvalidSetting, match="'yaml'; expected one of terminal, json"):
        report_format("yaml")
