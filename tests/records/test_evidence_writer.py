import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from outrider.errors import InvalidEvidence, UnwritableOutput
from outrider.records.divergence import Divergence
from outrider.records.environment import Environment
from outrider.records.evidence import Evidence
from outrider.records.evidence_reader import read_evidence
from outrider.records.evidence_writer import EvidenceWriter
from outrider.records.output_file import writing
from outrider.records.request import Phase
from outrider.records.run import RunSettings

RUN_LINES = 20


def test_a_closed_run_is_one_file(tmp_path: Path, plan: Evidence) -> None:
    path = tmp_path / "run.duckdb"
    with EvidenceWriter.create(path, plan.settings, plan.environments[0], plan.prompts) as writer:
        writer.record(plan.requests[0])
        assert len(list(tmp_path.iterdir())) == 2
    assert list(tmp_path.iterdir()) == [path]


def test_a_killed_run_keeps_all_that_was_recorded(
    tmp_path: Path, plan: Evidence, start_run: Any
) -> None:
    path = tmp_path / "run.duckdb"
    child = start_run(path, plan)
    seen = [child.stdout.readline() for _ in range(RUN_LINES)]
    child.kill()
    seen += child.communicate()[0].splitlines()

    evidence = read_evidence(path)
    assert child.returncode == -signal.SIGKILL
    assert set(map(str.strip, seen)) == {"recorded"}
    assert len(seen) <= len(evidence.requests) <= len(seen) + 1
    assert evidence.requests == plan.requests[: len(evidence.requests)]


def test_an_interrupted_run_is_one_file_with_all_that_was_recorded(
    tmp_path: Path, plan: Evidence, start_run: Any
) -> None:
    path = tmp_path / "run.duckdb"
    child = start_run(path, plan)
    seen = [child.stdout.readline() for _ in range(RUN_LINES)]
    child.send_signal(signal.SIGINT)
    output, errors = child.communicate()
    seen += output.splitlines()

    evidence = read_evidence(path)
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    assert not path.with_name("run.duckdb.wal").exists()
    assert len(seen) <= len(evidence.requests) <= len(seen) + 1
    assert evidence.requests == plan.requests[: len(evidence.requests)]


def test_an_interrupt_waits_until_the_request_is_recorded(tmp_path: Path, plan: Evidence) -> None:
    path = tmp_path / "run.duckdb"

    def record_interrupted() -> None:
        with writing(path):
            signal.raise_signal(signal.SIGINT)
            writer.record(plan.requests[0])

    with EvidenceWriter.create(path, plan.settings, plan.environments[0], plan.prompts) as writer:
        with pytest.raises(KeyboardInterrupt):
            record_interrupted()
        writer.record(plan.requests[1])
    assert read_evidence(path).requests == plan.requests[:2]


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_full_disk_ends_the_run_in_one_line_and_keeps_what_was_recorded(
    tmp_path: Path, plan: Evidence, start_run: Any
) -> None:
    path = tmp_path / "run.duckdb"
    child = start_run(path, plan, limit_bytes=400_000)
    output, errors = child.communicate()

    last = errors.splitlines()[-1]
    assert last.startswith(f"outrider.errors.UnwritableOutput: {path} cannot be written")
    seen = len(output.splitlines())
    assert 5 < seen < len(plan.requests)
    assert read_evidence(path).requests == plan.requests[:seen]


def test_a_killed_run_goes_on_in_a_second_session(
    tmp_path: Path, plan: Evidence, start_run: Any
) -> None:
    path = tmp_path / "run.duckdb"
    child = start_run(path, plan)
    for _ in range(RUN_LINES):
        child.stdout.readline()
    child.kill()
    child.communicate()

    elsewhere = replace(plan.environments[0], cpu="EPYC", threads=8)
    before = read_evidence(path)
    todo = [
        request
        for request in plan.requests[: RUN_LINES + 30]
        if (request.arm, request.prompt_id, request.repeat) not in before.finished()
    ]
    with EvidenceWriter.append(path, elsewhere) as writer:
        for request in todo:
            writer.record(request)

    after = read_evidence(path)
    assert after.requests == plan.requests[: RUN_LINES + 30]
    assert after.environments == (plan.environments[0], elsewhere)
    assert after.sessions == (0,) * len(before.requests) + (1,) * len(todo)
    assert after.settings == plan.settings
    assert after.prompts == plan.prompts


def test_a_run_that_another_process_writes_is_neither_read_nor_continued(
    tmp_path: Path, plan: Evidence, start_run: Any
) -> None:
    path = tmp_path / "run.duckdb"
    child = start_run(path, replace(plan, requests=plan.requests[:1], sessions=(0,)))
    child.stdout.readline()
    with pytest.raises(InvalidEvidence, match=f"in use by PID {child.pid}"):
        read_evidence(path)
    with pytest.raises(InvalidEvidence, match=f"in use by PID {child.pid}"):
        EvidenceWriter.append(path, plan.environments[0])
    child.communicate()
    assert child.returncode == 0
    assert read_evidence(path).requests == plan.requests[:1]


def test_a_measured_request_is_recorded_once(tmp_path: Path, plan: Evidence) -> None:
    path = tmp_path / "run.duckdb"
    request = plan.requests[0]
    warmup = replace(request, phase=Phase.WARMUP)
    with EvidenceWriter.create(path, plan.settings, plan.environments[0], plan.prompts) as writer:
        writer.record(warmup)
        writer.record(warmup)
        writer.record(request)
        with pytest.raises(AssertionError, match="recorded before"):
            writer.record(request)
    with EvidenceWriter.append(path, plan.environments[0]) as writer:
        writer.record(warmup)
        with pytest.raises(AssertionError, match="recorded before"):
            writer.record(request)
    assert read_evidence(path).requests == (warmup, warmup, request, warmup)


def test_other_weights_or_another_dtype_cannot_continue_a_run(
    tmp_path: Path, plan: Evidence
) -> None:
    path = tmp_path / "run.duckdb"
    [environment] = plan.environments
    EvidenceWriter.create(path, plan.settings, environment, plan.prompts).close()
    seen = "was measured on weights cdcdcdcdcdcd in bfloat16"
    for model in (
        replace(environment.model, sha256="ef" * 32),
        replace(environment.model, dtype="float32"),
    ):
        with pytest.raises(InvalidEvidence, match=seen):
            EvidenceWriter.append(path, replace(environment, model=model))
    assert read_evidence(path).environments == (environment,)


def test_a_later_finding_on_a_request_replaces_the_earlier_one(
    tmp_path: Path, plan: Evidence
) -> None:
    path = tmp_path / "run.duckdb"
    first = Divergence("ngram-4", "copy-1", 0, 5, 17, None, None, "real")
    second = Divergence("ngram-4", "chat-1", 1, 0, None, 3, 0.25, "near-tie")
    corrected = replace(first, top2_gap=1e-3, kind="near-tie")
    with EvidenceWriter.create(path, plan.settings, plan.environments[0], plan.prompts) as writer:
        writer.record_divergences([first, second])
        writer.record_divergences([corrected])
    assert read_evidence(path).divergences == (second, corrected)


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_disk_too_full_for_a_start_is_left_as_it_was(
    tmp_path: Path, plan: Evidence, start_run: Any
) -> None:
    child = start_run(tmp_path / "run.duckdb", plan, limit_bytes=10_000)
    _, errors = child.communicate()
    assert "run.duckdb cannot be written" in errors.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("folder", "is a folder"),
        ("notes.txt", "exists already"),
        ("nowhere/run.duckdb", "there is no folder"),
        ("notes.txt/run.duckdb", "there is no folder"),
    ],
)
def test_a_path_that_cannot_be_a_new_file_is_refused(
    tmp_path: Path, plan: Evidence, name: str, seen: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UnwritableOutput, match=seen):
        EvidenceWriter.create(tmp_path / name, plan.settings, plan.environments[0], plan.prompts)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "notes.txt"]
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder that even root cannot write to")
def test_a_folder_that_takes_no_file_is_refused_in_one_line(plan: Evidence) -> None:
    path = Path("/proc/run.duckdb")
    with pytest.raises(UnwritableOutput, match=r"/proc/run\.duckdb cannot be written") as caught:
        EvidenceWriter.create(path, plan.settings, plan.environments[0], plan.prompts)
    assert "\n" not in str(caught.value)


def test_a_run_that_cannot_be_described_leaves_no_file(tmp_path: Path, plan: Evidence) -> None:
    path = tmp_path / "run.duckdb"
    with pytest.raises(duckdb.ConstraintException):
        EvidenceWriter.create(path, plan.settings, plan.environments[0], plan.prompts * 2)
    assert list(tmp_path.iterdir()) == []


def test_only_evidence_is_continued(
    tmp_path: Path, settings: RunSettings, environment: Environment
) -> None:
    with pytest.raises(InvalidEvidence, match="there is no file"):
        EvidenceWriter.append(tmp_path / "missing.duckdb", environment)
    assert list(tmp_path.iterdir()) == []
