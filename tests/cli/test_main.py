import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Protocol

import pytest
from tests.cli.running import Run


class Finished(Protocol):
    evidence: Path


COMMAND = [sys.executable, "-m", "outrider.cli.main"]


def test_the_version_is_that_of_the_package(run: Run) -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.out.strip() == metadata.version("outrider")


def test_help_names_the_commands(run: Run) -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "  tune " in result.out
    assert "  report " in result.out


@pytest.mark.parametrize(
    "option", ["--k", "--workload", "--repeats", "--quick", "--output", "--resume", "--debug"]
)
def test_the_help_of_tune_names_its_options(option: str, run: Run) -> None:
    assert f"  {option} " in run("tune", "--help").out


@pytest.mark.parametrize("arguments", [["--help"], ["tune", "--help"], ["report", "nothing"]])
def test_what_needs_no_engine_does_not_load_one(arguments: list[str]) -> None:
    script = (
        "import sys\nfrom outrider.cli.main import main\n"
        f"try:\n    main({arguments})\n"
        "except SystemExit:\n    print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "False False"


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_reader_that_stops_early_is_no_failure(form: str, finished: Finished) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*COMMAND, "report", finished.evidence, "--format", form],
            check=False,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_output_without_greek_letters_gets_question_marks(finished: Finished) -> None:
    done = subprocess.run(
        [*COMMAND, "report", finished.evidence],
        check=False,
        capture_output=True,
        encoding="ascii",
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "?" in done.stdout
