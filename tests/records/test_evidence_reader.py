import sqlite3
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.errors import InvalidEvidence
from outrider.records import evidence_schema
from outrider.records.arm import Arm
from outrider.records.divergence import Divergence
from outrider.records.environment import Environment, ModelIdentity
from outrider.records.evidence import Evidence
from outrider.records.evidence_reader import read_evidence
from outrider.records.evidence_writer import EvidenceWriter
from outrider.records.prompt import PromptRecord
from outrider.records.request import Phase, RequestRecord, StepRecord
from outrider.records.run import RunSettings

COUNTS = st.integers(0, 2**31 - 1)
TOKENS = st.lists(COUNTS, max_size=5).map(tuple)
SECONDS = st.floats(0, 1e6)
TEXT = st.text(max_size=8)
STEPS = st.builds(StepRecord, COUNTS, COUNTS, COUNTS, SECONDS, SECONDS, SECONDS)
REQUESTS = st.builds(
    RequestRecord,
    arm=TEXT,
    prompt_id=TEXT,
    repeat=COUNTS,
    prompt_tokens=COUNTS,
    output_token_ids=TOKENS,
    prefill_s=SECONDS,
    steps=st.lists(STEPS, max_size=4).map(tuple),
)
ARMS = st.builds(
    Arm,
    name=TEXT,
    method=TEXT,
    num_speculative_tokens=COUNTS,
    prompt_lookup_min=st.none() | COUNTS,
    prompt_lookup_max=st.none() | COUNTS,
)
SETTINGS = st.builds(
    RunSettings,
    arms=st.lists(ARMS, max_size=3, unique_by=lambda arm: arm.name).map(tuple),
    repeats=COUNTS,
    seed=st.integers(0, 2**63 - 1),
    temperature=st.floats(0, 2),
    threads=st.none() | COUNTS,
    max_tokens=st.none() | COUNTS,
)
ENVIRONMENTS = st.builds(
    Environment,
    started_at=st.datetimes(
        datetime(2000, 1, 1), timezones=st.just(timezone(timedelta(hours=5, minutes=30)))
    ),
    threads=COUNTS,
    model=st.builds(ModelIdentity, parameters=st.integers(0, 2**63 - 1)),
    versions=st.dictionaries(TEXT, st.none() | TEXT, max_size=3),
    physical_cores=st.none() | COUNTS,
    logical_cores=st.none() | COUNTS,
    memory_bytes=st.integers(0, 2**63 - 1),
)
PROMPTS = st.lists(
    st.builds(PromptRecord, token_ids=TOKENS, max_tokens=COUNTS),
    max_size=3,
    unique_by=lambda prompt: prompt.prompt_id,
)
DIVERGENCES = st.builds(
    Divergence,
    repeat=COUNTS,
    position=COUNTS,
    expected_token_id=st.none() | COUNTS,
    actual_token_id=st.none() | COUNTS,
    top2_gap=st.none() | st.floats(0, 100),
)


@settings(max_examples=15, deadline=None)
@given(
    SETTINGS,
    ENVIRONMENTS,
    PROMPTS,
    st.lists(REQUESTS, max_size=4, unique_by=lambda r: (r.arm, r.prompt_id, r.repeat)),
    st.lists(DIVERGENCES, max_size=2, unique_by=lambda d: (d.arm, d.prompt_id, d.repeat)),
)
def test_what_is_read_equals_what_was_written(
    run: RunSettings,
    environment: Environment,
    prompts: Sequence[PromptRecord],
    requests: Sequence[RequestRecord],
    divergences: Sequence[Divergence],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.duckdb"
        with EvidenceWriter.create(path, run, environment, prompts) as writer:
            for request in requests:
                writer.record(request)
            writer.record_divergences(divergences)
        evidence = read_evidence(path)
    assert set(evidence.divergences) == set(divergences)
    assert evidence == Evidence(
        run,
        (environment,),
        tuple(prompts),
        tuple(requests),
        (0,) * len(requests),
        evidence.divergences,
    )


@pytest.fixture
def run_file(tmp_path: Path, plan: Evidence) -> Path:
    """Two measured requests of 100 steps after a warm-up."""
    path = tmp_path / "run.duckdb"
    with EvidenceWriter.create(path, plan.settings, plan.environments[0], plan.prompts) as writer:
        for request in plan.requests[:3]:
            writer.record(request)
    with duckdb.connect(path) as connection:
        connection.execute("UPDATE requests SET phase = 'warmup' WHERE ordinal = 0")
    return path


def test_the_documented_query_gives_the_mean_acceptance_length(run_file: Path) -> None:
    documentation = evidence_schema.__doc__ or ""
    query = documentation[documentation.index("SELECT") : documentation.index("While a run")]
    steps = [step for request in read_evidence(run_file).measured for step in request.steps]
    accepted = sum(step.accepted for step in steps)
    with duckdb.connect(run_file, read_only=True) as connection:
        assert connection.execute(query).fetchall() == [("ngram-4", 1 + accepted / len(steps))]
    # 100 steps accept 0, 1, 2, 3, 4 in turn.
    assert (len(steps), accepted) == (200, 400)


def test_sums_by_hand_equal_those_of_the_records(run_file: Path) -> None:
    requests = read_evidence(run_file).requests
    with duckdb.connect(run_file, read_only=True) as connection:
        rows = connection.execute(
            "SELECT ordinal, sum(drafted), sum(accepted), sum(emitted), sum(step_s), "
            "any_value(len(output_token_ids)), any_value(output_token_ids[2]) "
            "FROM requests JOIN steps ON request = ordinal GROUP BY ordinal ORDER BY ordinal"
        ).fetchall()
    assert [row[:4] for row in rows] == [(0, 400, 200, 300), (1, 400, 200, 300), (2, 400, 200, 300)]
    assert [row[4] for row in rows] == pytest.approx([request.decode_s for request in requests])
    # SQL counts from 1.
    assert {row[5:] for row in rows} == {(301, requests[0].output_token_ids[1])}


def test_reading_changes_nothing(run_file: Path) -> None:
    before = run_file.read_bytes()
    evidence = read_evidence(run_file)
    assert read_evidence(run_file) == evidence
    assert run_file.read_bytes() == before
    assert list(run_file.parent.iterdir()) == [run_file]


def test_only_measured_requests_count(run_file: Path, plan: Evidence) -> None:
    evidence = read_evidence(run_file)
    assert [request.phase for request in evidence.requests] == ["warmup", "measured", "measured"]
    assert evidence.measured == plan.requests[1:3]
    assert evidence.finished() == {("ngram-4", "copy-1", 1), ("ngram-4", "copy-1", 2)}


def assert_invalid(path: Path, seen: str) -> None:
    with pytest.raises(InvalidEvidence, match=seen) as caught:
        read_evidence(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_what_is_no_database_is_named(tmp_path: Path) -> None:
    assert_invalid(tmp_path / "missing.duckdb", "there is no file")
    assert_invalid(tmp_path, "is a folder")
    for content in (b"", b"hello", b"hello" * 10_000):
        (tmp_path / "notes.txt").write_bytes(content)
        assert_invalid(tmp_path / "notes.txt", "not a valid DuckDB database file")
    with sqlite3.connect(tmp_path / "other.sqlite") as connection:
        connection.execute("CREATE TABLE meta (schema_version)")
    connection.close()
    assert_invalid(tmp_path / "other.sqlite", "cannot be read")


def test_a_database_without_a_run_is_named(tmp_path: Path) -> None:
    for name, table in {"empty": "nothing", "foreign": "meta"}.items():
        path = tmp_path / name
        with duckdb.connect(path) as connection:
            connection.execute(f"CREATE TABLE {table} (a INTEGER)")
        assert_invalid(path, "is a database without a run in it")


def test_another_schema_version_is_named(run_file: Path) -> None:
    with duckdb.connect(run_file) as connection:
        connection.execute("UPDATE meta SET schema_version = 99, outrider_version = '9.0'")
    assert_invalid(run_file, "has schema version 99 of outrider 9.0; expected schema version 2")


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (
            "UPDATE arms SET ngram_tie = 'first' WHERE name = 'ngram-4'",
            "'first' as settings.arms.1",
        ),
        ("DELETE FROM settings", "as settings.model"),
        ("DROP TABLE steps", "cannot be read"),
    ],
)
def test_content_that_no_run_writes_is_named(run_file: Path, change: str, seen: str) -> None:
    with duckdb.connect(run_file) as connection:
        connection.execute(change)
    assert_invalid(run_file, seen)


def test_a_cut_file_is_refused(run_file: Path, tmp_path: Path) -> None:
    content = run_file.read_bytes()
    cut = tmp_path / "cut.duckdb"
    for kept in (1, 12, 4096, 5000, 12_288, len(content) // 2):
        cut.write_bytes(content[:kept])
        assert_invalid(cut, "cut.duckdb")


def test_an_altered_file_is_read_right_or_refused(run_file: Path, tmp_path: Path) -> None:
    content = run_file.read_bytes()
    evidence = read_evidence(run_file)
    altered = tmp_path / "altered.duckdb"
    refused = 0
    for position in range(5, len(content), len(content) // 20):
        copy = bytearray(content)
        copy[position] ^= 0xFF
        altered.write_bytes(copy)
        try:
            assert read_evidence(altered) == evidence
        except InvalidEvidence:
            refused += 1
    assert refused > 0


def test_a_run_that_this_process_is_writing_is_not_read(tmp_path: Path, plan: Evidence) -> None:
    path = tmp_path / "run.duckdb"
    with EvidenceWriter.create(path, plan.settings, plan.environments[0], plan.prompts):
        assert_invalid(path, "is in use by this process")


def test_a_torn_last_record_is_left_out(tmp_path: Path, plan: Evidence) -> None:
    path, copy = tmp_path / "run.duckdb", tmp_path / "copy.duckdb"
    wal, copied_wal = tmp_path / "run.duckdb.wal", tmp_path / "copy.duckdb.wal"
    with EvidenceWriter.create(path, plan.settings, plan.environments[0], plan.prompts) as writer:
        writer.record(plan.requests[0])
        one = wal.stat().st_size
        writer.record(plan.requests[1])
        log = wal.read_bytes()
        database = path.read_bytes()
    for kept in (one, one + 1, (one + len(log)) // 2, len(log) - 1, len(log)):
        copy.write_bytes(database)
        copied_wal.write_bytes(log[:kept])
        whole = 2 if kept == len(log) else 1
        assert read_evidence(copy).requests == plan.requests[:whole]


def _named(request: RequestRecord, key: tuple[str, str, int], phase: Phase) -> RequestRecord:
    arm, prompt_id, repeat = key
    return replace(request, arm=arm, prompt_id=prompt_id, repeat=repeat, phase=phase)


def test_a_run_is_complete_once_every_arm_has_answered_every_prompt(
    tmp_path: Path, plan: Evidence
) -> None:
    path = tmp_path / "run.duckdb"
    run = plan.settings
    template = plan.requests[0]
    todo = [
        (arm.name, prompt.prompt_id, repeat)
        for arm in run.arms
        for prompt in plan.prompts
        for repeat in range(run.repeats)
    ]
    with EvidenceWriter.create(path, run, plan.environments[0], plan.prompts) as writer:
        writer.record(_named(template, todo[-1], Phase.WARMUP))
        for key in todo[:-1]:
            writer.record(_named(template, key, Phase.MEASURED))
    assert not read_evidence(path).complete
    with EvidenceWriter.append(path, plan.environments[0]) as writer:
        writer.record(_named(template, todo[-1], Phase.MEASURED))
    assert read_evidence(path).complete
