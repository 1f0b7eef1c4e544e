"""`outrider train` as a user has it."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run

SMALL = (
    "--samples", 1, "--max-tokens", 8, "--hidden-size", 16, "--heads", 1, "--layers", 1,
    "--intermediate-size", 16, "--steps", 3, "--window", 64, "--batch-tokens", 64,
)  # fmt: skip


def test_it_writes_a_model_folder_with_its_card_and_can_be_run_again(
    run: Run, tiny_model: Path, workload: Path, quiet: tuple[str, ...], tmp_path: Path
) -> None:
    output = tmp_path / "draft"
    command = ("train", tiny_model, "--output", output, "--workload", workload, *SMALL, *quiet)
    result = run(*command)
    assert result.exit_code == 0, result.err
    assert "held-out answers" in result.err
    names = {file.name for file in output.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md"} <= names
    again = run(*command)
    assert again.exit_code == 2
    assert again.err == (
        f"outrider: {output} exists already; expected a new folder;"
        " go on with --resume or choose another name\n"
    )
    assert run(*command, "--resume").exit_code == 0


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--k", 0, "--k 0; expected a number from 1 to 64"),
        ("--hidden-size", 95, "--hidden-size 95 with --heads 3; expected heads of an even size"),
        ("--samples", -1, "--samples -1; expected a number from 0 to 1000"),
    ],
)
def test_a_wrong_option_is_told_in_one_line_before_anything_is_loaded(
    option: str, value: int, told: str, run: Run, tmp_path: Path
) -> None:
    result = run("train", "no-such-model", "--output", tmp_path / "draft", option, value)
    assert result.exit_code == 2
    assert told in result.err
    assert result.err.count("\n") == 1


def test_a_folder_that_is_not_there_is_told_in_one_line(
    run: Run, tiny_model: Path, quiet: tuple[str, ...], tmp_path: Path
) -> None:
    result = run("train", tiny_model, "--output", tmp_path / "no" / "draft", *SMALL, *quiet)
    assert result.exit_code == 2
    assert "cannot be made (No such file or directory)" in result.err
    assert result.err.count("\n") == 1
