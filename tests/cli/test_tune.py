import shutil
from pathlib import Path
from typing import Protocol

import duckdb
import pytest
from tests.cli.running import Result, Run

from outrider.records.evidence_reader import read_evidence


class Finished(Protocol):
    result: Result
    evidence: Path


@pytest.fixture
def copied(finished: Finished, tmp_path: Path) -> Path:
    """The evidence of the complete run, to write to."""
    return Path(shutil.copy(finished.evidence, tmp_path / "copy.duckdb"))


def test_a_run_ends_well_and_keeps_every_request(finished: Finished, tiny_model: Path) -> None:
    assert finished.result.exit_code == 0
    evidence = read_evidence(finished.evidence)
    assert evidence.complete
    assert len(evidence.measured) == 6 * 2 * 3
    assert [arm.name for arm in evidence.settings.arms] == ["none", "ngram K=1", "ngram K=2"]
    assert evidence.settings.model == str(tiny_model)
    assert (evidence.settings.workload, evidence.settings.repeats) == ("six", 2)
    assert evidence.divergences == ()


def test_the_report_is_on_standard_output_and_all_else_is_not(finished: Finished) -> None:
    out, err = finished.result.out, finished.result.err
    for heading in ("Losslessness", "Acceptance", "Speed of decoding", "Findings", "Deploy"):
        assert f"\n{heading}\n" in out
    assert "vllm serve" in out
    assert err.splitlines()[0].startswith("loading ")
    assert err.splitlines()[-1] == f"evidence: {finished.evidence}"


def test_the_report_command_prints_the_same_text(run: Run, finished: Finished) -> None:
    result = run("report", finished.evidence)
    assert result.exit_code == 0
    assert result.out == finished.result.out
    assert result.err == ""


def test_a_quick_run_says_everywhere_that_it_is_one(
    run: Run, tiny_model: Path, tmp_path: Path, quiet: tuple[str, ...]
) -> None:
    path = tmp_path / "quick.duckdb"
    result = run(
        "tune", tiny_model, "--quick", "--k", 2, "--max-tokens", 6, "--output", path, *quiet
    )
    assert result.exit_code == 0
    evidence = read_evidence(path)
    assert evidence.settings.smoke
    assert len(evidence.measured) == 6 * 1 * 2
    assert max(len(request.output_token_ids) for request in evidence.measured) == 6
    assert "Smoke run" in result.out
    figures = [line for line in result.out.splitlines() if line.startswith("   ngram K=2 ")]
    assert figures
    assert all(line.endswith("smoke") for line in figures if "steps H_j" not in line)


def test_no_option_is_needed_for_the_engine(
    run: Run, tiny_model: Path, workload: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run.duckdb"
    result = run("tune", tiny_model, "--workload", workload, "--repeats", 1, "--output", path)
    assert result.exit_code == 0
    evidence = read_evidence(path)
    assert len(evidence.settings.arms) == 1 + 4
    assert evidence.complete
    assert (evidence.settings.dtype, evidence.settings.threads) == (None, None)
    assert evidence.environments[0].threads >= 1
    assert all(found.kind == "near-tie" for found in evidence.divergences)


def test_without_an_output_the_file_is_named_after_the_model(
    run: Run,
    tiny_model: Path,
    workload: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    quiet: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(
        "tune", tiny_model, "--workload", workload, "--repeats", 1, "--k", 1, "--max-tokens", 2,
        *quiet,
    )  # fmt: skip
    assert result.exit_code == 0
    [path] = tmp_path.glob("*.duckdb")
    assert path.name.startswith("outrider-tiny-")
    assert read_evidence(path).complete


def test_the_time_limit_says_how_to_go_on(
    run: Run, tiny_model: Path, workload: Path, tmp_path: Path, quiet: tuple[str, ...]
) -> None:
    path = tmp_path / "with a space.duckdb"
    result = run(
        "tune", tiny_model, "--workload", workload, "--k", 1, "--time-limit", 1e-9,
        "--output", path, *quiet,
    )  # fmt: skip
    assert result.exit_code == 0
    assert "Incomplete: 0 of 36 requests" in result.out
    assert f"stopped by --time-limit, go on with: outrider tune --resume '{path}'" in result.err
    assert run("tune", "--resume", path).exit_code == 0
    assert read_evidence(path).complete


def test_a_complete_run_resumed_prints_its_figures_again(
    run: Run, copied: Path, finished: Finished
) -> None:
    result = run("tune", "--resume", copied)
    assert result.exit_code == 0
    _, _, figures = finished.result.out.partition("\nLosslessness\n")
    assert figures in result.out
    assert read_evidence(copied).requests == read_evidence(finished.evidence).requests


def test_a_resumed_run_keeps_to_the_backend_of_its_file(run: Run, copied: Path) -> None:
    assert run("tune", "--resume", copied).exit_code == 0
    first, second = read_evidence(copied).environments
    assert (second.backend, second.threads, second.model.dtype) == ("torch", 1, "float32")
    assert second.model == first.model


def test_an_output_that_is_not_lossless_fails_the_run(run: Run, copied: Path) -> None:
    with duckdb.connect(copied) as database:
        database.execute(
            "UPDATE requests SET output_token_ids = list_concat(output_token_ids[:3], [7])"
            " WHERE arm = 'ngram K=2' AND prompt_id = 'p3' AND repeat = 1 AND phase = 'measured'"
        )
    result = run("tune", "--resume", copied)
    assert result.exit_code == 1
    assert "REAL DIVERGENCE" in result.out
    last = result.err.splitlines()[-1]
    assert last.startswith("outrider: the output of ngram K=2 is not that of no speculation;")
    assert f"outrider report {copied}" in last
    [found] = read_evidence(copied).divergences
    assert (found.arm, found.prompt_id, found.repeat) == ("ngram K=2", "p3", 1)
    assert (found.position, found.actual_token_id, found.kind) == (3, 7, "real")


def test_another_model_under_the_same_name_cannot_continue_a_run(
    run: Run, copied: Path, tiny_model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "tiny"
    shutil.copytree(tiny_model, folder)
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    with duckdb.connect(copied) as database:
        database.execute("UPDATE settings SET model = ?", [str(folder)])
    result = run("tune", "--resume", copied)
    assert result.exit_code == 2
    assert "was measured on weights" in result.err.splitlines()[-1]
    assert len(read_evidence(copied).environments) == 1
