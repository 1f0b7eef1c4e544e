from dataclasses import replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import Protocol

import pytest

from outrider.records.adapters.evidence import EvidenceAdapter
from outrider.records.arm import Arm
from outrider.records.collecting import Collection
from outrider.records.environment import Environment
from outrider.records.evidence_writer import EvidenceWriter
from outrider.records.prompt import PromptRecord
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Place, Reading, Scope
from outrider.records.request import Phase, RequestRecord, StepRecord
from outrider.records.run import RunSettings
from outrider.records.sources.document import FileDocument, JsonDocument
from outrider.records.validation import validated

ADAPTER = EvidenceAdapter()


def document(path: Path) -> FileDocument:
    return FileDocument(Place(str(path)), path, path.read_bytes()[:64])


def readings(path: Path) -> list[Reading | Collection]:
    return [told for _, told in ADAPTER.convert(document(path))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.duckdb"


class Written(Protocol):
    def __call__(
        self, *requests: RequestRecord, arms: tuple[Arm, ...] = ...
    ) -> list[Reading | Collection]: ...


@pytest.fixture
def written(
    path: Path,
    settings: RunSettings,
    environment: Environment,
    prompts: tuple[PromptRecord, ...],
) -> Written:
    """Writes a run of these requests, with more arms if need be, and reads it."""

    def write_and_read(
        *requests: RequestRecord, arms: tuple[Arm, ...] = ()
    ) -> list[Reading | Collection]:
        run = replace(settings, arms=(*settings.arms, *arms))
        with EvidenceWriter.create(path, run, environment, prompts) as writer:
            for request in requests:
                writer.record(request)
        return readings(path)

    return write_and_read


@pytest.fixture
def request_of_5_steps(make_request) -> RequestRecord:  # type: ignore[no-untyped-def]
    """Accepts 0, 1, 2, 3, 4 of 4; then decodes two steps without a draft."""
    made: RequestRecord = make_request("ngram-4", "copy-1", 0, steps=5)
    plain = StepRecord(0, 0, 1, 0.0, 0.001, 0.001)
    return replace(made, steps=(*made.steps, plain, plain))


def test_a_measured_request_is_a_record_of_its_steps_with_a_draft(
    written: Written, request_of_5_steps: RequestRecord
) -> None:
    (record,) = written(request_of_5_steps)
    assert isinstance(record, AcceptanceRecord)
    assert validated(record).histogram == (1, 1, 1, 1, 1)
    assert (record.engine, record.scope, record.cluster, record.k) == (
        "outrider",
        Scope.REQUEST,
        "copy-1",
        4,
    )
    assert (record.steps, record.accepted, record.drafted) == (5, 10, 20)
    assert (record.per_step_accepted, record.per_step_drafted) == ([0, 1, 2, 3, 4], [4] * 5)
    assert record.decode_steps == 7
    assert (record.prompt_tokens, record.completion_tokens) == (3, 16)
    assert record.tags == {
        "method": "ngram",
        "model": "smollm2-135m",
        "temperature": 0.0,
        "finish_reason": "stop",
        "kind": "copy",
    }


def test_the_time_of_each_step_is_the_gap_before_its_tokens(
    written: Written, request_of_5_steps: RequestRecord
) -> None:
    (record,) = written(request_of_5_steps)
    assert isinstance(record, AcceptanceRecord)
    gaps_ms = [0.5, 1.5, 2.5, 3.5, 4.5, 1, 1]  # the prefill's 20 ms are no gap
    cadence = validated(record).cadence
    assert cadence is not None
    assert (cadence.answers, cadence.gaps) == (1, 7)
    assert cadence.gap_sum_ms == pytest.approx(sum(gaps_ms))
    assert cadence.longest_gap_ms == pytest.approx(4.5)
    assert cadence.gap_cv_sum == pytest.approx(pstdev(gaps_ms) / fmean(gaps_ms))


def test_warm_up_and_plain_decoding_are_explained(
    written: Written, request_of_5_steps: RequestRecord
) -> None:
    warm = replace(request_of_5_steps, phase=Phase.WARMUP)
    plain = replace(
        request_of_5_steps,
        arm="none",
        steps=tuple(replace(step, drafted=0, accepted=0) for step in request_of_5_steps.steps),
    )
    assert written(warm, plain) == [
        NoMetrics("warm-up"),
        NoMetrics("no speculation: nothing was drafted"),
    ]


def test_a_request_that_never_drafted_has_zero_steps(
    written: Written, request_of_5_steps: RequestRecord
) -> None:
    steps = tuple(replace(step, drafted=0, accepted=0) for step in request_of_5_steps.steps)
    (record,) = written(replace(request_of_5_steps, steps=steps))
    assert isinstance(record, AcceptanceRecord)
    assert (validated(record).steps, record.decode_steps) == (0, 7)


def test_arms_of_one_method_and_k_are_told_apart_by_name(
    written: Written, request_of_5_steps: RequestRecord
) -> None:
    other = Arm("ngram-4-wide", "ngram", 4, 1, 9, "recent")
    told = written(request_of_5_steps, replace(request_of_5_steps, arm=other.name), arms=(other,))
    arms = [each.tags.get("arm") for each in told if isinstance(each, AcceptanceRecord)]
    assert arms == ["ngram-4", "ngram-4-wide"]


@pytest.mark.parametrize("length", [0, 20, 5000])
def test_a_damaged_file_is_one_bad_record(
    path: Path, written: Written, request_of_5_steps: RequestRecord, length: int
) -> None:
    written(request_of_5_steps)
    path.write_bytes(path.read_bytes()[:length])
    (told,) = readings(path)
    assert isinstance(told, BadRecord)


def test_it_recognises_databases_and_nothing_else(path: Path, written: Written) -> None:
    assert [type(told) for told in written()] == [NoMetrics]
    assert ADAPTER.recognises(document(path))
    assert not ADAPTER.recognises(FileDocument(Place("x"), path, b"SQLite format 3\0"))
    assert not ADAPTER.recognises(JsonDocument(Place("x"), {"DUCK": 1}))
    assert [type(told) for _, told in ADAPTER.convert(JsonDocument(Place("x"), {}))] == [BadRecord]
