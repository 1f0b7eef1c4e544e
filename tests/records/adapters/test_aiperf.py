from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.adapters.aiperf import AiperfAdapter
from outrider.records.collecting import Collection
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Place, Reading, Scope
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
