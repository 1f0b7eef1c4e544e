from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.adapters.guidellm import GuidellmAdapter
from outrider.records.collecting import Collection
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Place, Reading, Scope
from outrider.records.sources.document import JsonDocument
from outrider.records.validation import validated

CASES = Path(__file__).parents[1] / "cases" / "bench"
REPORT = msgspec.json.decode((CASES / "guidellm-0.8.json").read_bytes())
ADAPTER = GuidellmAdapter()


def readings(value: Any) -> list[Reading | Collection]:
    return [told for _, told in ADAPTER.convert(JsonDocument(Place("benchmarks.json"), value))]


def test_a_request_is_a_record_with_the_load_of_its_benchmark() -> None:
    record = readings(REPORT)[0]
    assert isinstance(record, AcceptanceRecord)
    assert validated(record).histogram == [39, 1, 0, 3]
    assert (record.scope, record.engine, record.k) == (Scope.REQUEST, "vllm", 3)
    assert (record.steps, record.accepted, record.drafted) == (43, 10, 129)
    assert (record.prompt_tokens, record.cached_tokens, record.completion_tokens) == (31, 16, 53)
    assert record.id == "chatcmpl-1"
    assert record.tags == {
        "model": "smollm2-135m-instruct",
        "strategy": "concurrent",
        "concurrency": 4,
        "temperature": 0.7,
    }


def test_every_other_request_is_accounted_for() -> None:
    absent, contradictory, errored, incomplete = readings(REPORT)[1:]
    assert isinstance(absent, NoMetrics)
    assert "no acceptance" in absent.reason
    assert isinstance(contradictory, BadRecord)
    assert errored == NoMetrics("the request is errored")
    assert incomplete == NoMetrics("the request is incomplete")


def test_a_report_whose_requests_were_dropped_says_so() -> None:
    report = deepcopy(REPORT)
    report["benchmarks"][0]["requests"] = {"successful": [], "errored": [], "incomplete": []}
    (told,) = readings(report)
    assert isinstance(told, NoMetrics)
    assert "sample_size" in told.reason


def test_it_recognises_its_reports_and_nothing_else() -> None:
    assert ADAPTER.recognises(JsonDocument(Place("x"), REPORT))
    for name in ("vllm-0.32-ngram.json", "aiperf-0.13.json"):
        value = msgspec.json.decode((CASES / name).read_bytes())
        assert not ADAPTER.recognises(JsonDocument(Place("x"), value))
    for value in ({"choices": []}, {"benchmarks": [{"name": "BM_x"}]}, [39, 1, 0, 3], None):
        assert not ADAPTER.recognises(JsonDocument(Place("x"), value))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


def _changed(value: Any, path: list[int], new: Any) -> Any:
    """Put a value somewhere into JSON: each number of the path chooses a child."""
    if not path or not isinstance(value, (dict, list)) or not value:
        return new
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = keys[path[0] % len(keys)]
    value[key] = _changed(value[key], path[1:], new)
    return value


@given(
    JSON
    | st.builds(
        lambda path, new: _changed(deepcopy(REPORT), path, new),
        st.lists(st.integers(0, 9), max_size=9),
        JSON,
    )
)
def test_no_json_raises(value: Any) -> None:
    ADAPTER.recognises(JsonDocument(Place("x"), value))
    assert readings(value)
