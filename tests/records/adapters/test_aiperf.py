from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.adapters.aiperf import AiperfAdapter
from outrider.records.collecting import Collection
from outrider.records.reading import (
    AcceptanceRecord,
    BadRecord,
    Cadence,
    NoMetrics,
    Place,
    Reading,
    Scope,
)
from outrider.records.sources.document import JsonDocument
from outrider.records.validation import validated

CASES = Path(__file__).parents[1] / "cases" / "bench"
REQUESTS = [
    msgspec.json.decode(line)
    for line in (CASES / "aiperf-0.13.jsonl").read_bytes().splitlines()
]  # fmt: skip
SUMMARY = msgspec.json.decode((CASES / "aiperf-0.13.json").read_bytes())
ADAPTER = AiperfAdapter()


def readings(value: Any) -> list[Reading | Collection]:
    return [told for _, told in ADAPTER.convert(JsonDocument(Place("profile"), value))]


def test_a_request_is_a_record_from_its_sparse_histogram() -> None:
    (record,) = readings(REQUESTS[0])
    assert isinstance(record, AcceptanceRecord)
    assert validated(record).histogram == [39, 1, 0, 3]
    assert (record.scope, record.engine, record.k, record.id) == (
        Scope.REQUEST,
        "vllm",
        3,
        "7609a2e7",
    )
    assert (record.steps, record.accepted, record.drafted) == (43, 10, 129)
    assert (record.prompt_tokens, record.completion_tokens) == (31, 53)
    assert record.tags == {"phase": "profiling"}


def test_the_engine_is_the_one_that_the_record_names() -> None:
    request = deepcopy(REQUESTS[0])
    request["spec_decode_acceptance"].update(engine="sglang", num_spec_tokens=None)
    (record,) = readings(request)
    assert isinstance(record, AcceptanceRecord)
    assert (record.engine, record.k, validated(record).steps) == ("sglang", None, 43)


def streamed(gaps: Any, unit: Any = "ms") -> dict[str, Any]:
    request: dict[str, Any] = deepcopy(REQUESTS[0])
    request["metrics"]["inter_chunk_latency"] = {"value": gaps, "unit": unit}
    return request


def test_the_gaps_between_the_events_of_a_request_are_its_cadence() -> None:
    (record,) = readings(streamed([10.0, 10.0, 10.0, 50.0]))
    assert isinstance(record, AcceptanceRecord)
    cadence = validated(record).cadence
    assert cadence is not None
    assert (cadence.answers, cadence.gaps, cadence.gap_sum_ms) == (1, 4, 80)
    assert cadence.longest_gap_ms == 50
    assert cadence.gap_cv_sum == pytest.approx(0.866, abs=5e-4)
    assert (record.chunks, record.completion_tokens) == (5, 53)
    (in_ns,) = readings(streamed([10_000_000, 30_000_000], "ns"))
    assert isinstance(in_ns, AcceptanceRecord)
    assert in_ns.cadence is not None
    assert in_ns.cadence.gap_sum_ms == pytest.approx(40)


@pytest.mark.parametrize(("gaps", "unit"), [(None, "ms"), ([], "ms"), (5.0, "ms"), ([5.0], "h")])
def test_a_request_that_was_not_streamed_has_no_cadence(gaps: Any, unit: str) -> None:
    for request in (REQUESTS[0], streamed(gaps, unit)):
        (record,) = readings(request)
        assert isinstance(record, AcceptanceRecord)
        assert (record.cadence, record.chunks) == (None, None)


def test_a_gap_that_is_no_time_makes_the_request_bad() -> None:
    (told,) = readings(streamed([5.0, -1.0]))
    assert isinstance(told, BadRecord)
    assert "a gap between events is no time" in told.reason


def test_a_summary_tells_the_mean_and_the_longest_gap_of_all_answers_together() -> None:
    gaps = {"unit": "ms", "avg": 20.0, "max": 50.0, "std": 9.0, "count": 400, "sum": 8000.0}
    record = readings({**SUMMARY, "inter_chunk_latency": gaps})[-1]
    assert isinstance(record, AcceptanceRecord)
    cadence = validated(record).cadence
    assert cadence == Cadence(answers=0, gap_cv_sum=0, gaps=400, gap_sum_ms=8000, longest_gap_ms=50)
    for missing in ("avg", "max", "count", "unit"):
        record = readings({**SUMMARY, "inter_chunk_latency": {**gaps, missing: None}})[-1]
        assert isinstance(record, AcceptanceRecord)
        assert record.cadence is None


@pytest.mark.parametrize(
    ("number", "reason"), [(1, "warm-up"), (2, "AIPerf has no acceptance"), (3, "failed")]
)
def test_requests_without_acceptance_are_explained(number: int, reason: str) -> None:
    (told,) = readings(REQUESTS[number])
    assert isinstance(told, NoMetrics)
    assert reason in told.reason


def test_a_summary_is_the_interval_of_its_profiled_phase() -> None:
    warmup, record = readings(SUMMARY)
    assert warmup == NoMetrics("warm-up")
    assert isinstance(record, AcceptanceRecord)
    assert validated(record).steps == 25600
    assert (record.scope, record.requests, record.k) == (Scope.BENCHMARK, 200, 5)
    assert record.histogram == [6400, 4608, 3840, 3328, 3072, 4352]
    assert (record.accepted, record.drafted) == (56320, 128000)
    assert (record.prompt_tokens, record.completion_tokens) == (6000, 80000)
    assert record.tags == {"model": "llama-3.1-8b", "phase": "profiling", "concurrency": 16}


def test_a_summary_without_speculation_says_so() -> None:
    summary = {key: value for key, value in SUMMARY.items() if "spec_decode" not in key}
    told = readings(summary)[-1]
    assert isinstance(told, NoMetrics)
    assert "no acceptance" in told.reason


@pytest.mark.parametrize("histogram", [{"x": 1}, {"-1": 3}, {"999999": 1}, [1, 2], {}, "3"])
def test_a_histogram_by_something_else_than_lengths_is_bad(histogram: Any) -> None:
    (told,) = readings({"pooled_spec_decode_acceptance_histogram": histogram})
    assert isinstance(told, BadRecord)


def test_it_recognises_its_files_and_nothing_else() -> None:
    for value in (*REQUESTS, SUMMARY):
        assert ADAPTER.recognises(JsonDocument(Place("x"), value))
    for name in ("vllm-0.32-ngram.json", "guidellm-0.8.json"):
        other = msgspec.json.decode((CASES / name).read_bytes())
        assert not ADAPTER.recognises(JsonDocument(Place("x"), other))
    for value in ({"choices": [], "metrics": {}}, {"metadata": {}, "metrics": {}}, [1, 2], None):
        assert not ADAPTER.recognises(JsonDocument(Place("x"), value))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(
    JSON
    | st.dictionaries(st.sampled_from(sorted(SUMMARY)), JSON).map(lambda part: {**SUMMARY, **part})
    | JSON.map(streamed)
    | JSON.map(lambda part: {**SUMMARY, "inter_chunk_latency": part})
    | st.dictionaries(st.sampled_from(sorted(REQUESTS[0]["spec_decode_acceptance"])), JSON).map(
        lambda part: {
            **REQUESTS[0],
            "spec_decode_acceptance": {**REQUESTS[0]["spec_decode_acceptance"], **part},
        }
    )
)
def test_no_json_raises(value: Any) -> None:
    ADAPTER.recognises(JsonDocument(Place("x"), value))
    assert readings(value)
