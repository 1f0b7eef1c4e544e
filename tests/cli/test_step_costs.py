"""The step cost as it is typed or kept in a file: what is told of one that cannot be read."""

from pathlib import Path

import pytest

from outrider.cli.step_costs import read_step_cost
from outrider.errors import InvalidSetting


def test_a_csv_file_that_is_not_there_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"nope\.csv, which is no file; expected .*path$"):
        read_step_cost(str(tmp_path / "nope.csv"))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("k,cost\n0,12\n1,13\n", "its columns are k, cost"),
        ("ms\n12\n", "its columns are ms"),
        ("k,tokens_per_s\n0,12\n", "its columns are k, tokens_per_s"),
        ("", "its columns are none"),
        ("k,ms\n", "the table of step costs is empty"),
    ],
)
def test_a_file_of_other_columns_is_told_with_those_that_it_has(
    content: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "cost.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidSetting) as raised:
        read_step_cost(str(path))
    assert f"({told}" in str(raised.value)
    assert "with the columns k and ms" in str(raised.value)


@pytest.mark.parametrize("typed", ["1", "1,abc", "0:1,x"])
def test_what_is_expected_is_told_once(typed: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        read_step_cost(typed)
    assert str(raised.value).count("expected") == 1
