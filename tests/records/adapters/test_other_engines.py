"""SGLang, TensorRT-LLM, llama-server, mlx, vLLM's older place, and what is typed by hand."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from outrider.records.adapters import llama_server, mlx, sglang, tensorrt_llm, vllm_choice
from outrider.records.adapters.registry import adapter
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Place, Reading
from outrider.records.sources.document import JsonDocument
from outrider.records.validation import validated

PLACE = Place("answers.jsonl", 7)
CASES = Path(__file__).parents[1] / "cases"
BODIES: dict[tuple[str, str], Any] = {
    (row["adapter"], row["case"]): row["body"]
    for row in map(json.loads, (CASES / "other-engines.jsonl").read_text("utf-8").splitlines())
}


def readings(engine: str, body: object) -> list[Reading]:
    read: list[Reading] = []
    for place, reading in adapter(engine).convert(JsonDocument(PLACE, body, tags={"case": "x"})):
        assert place == PLACE
        assert isinstance(reading, AcceptanceRecord | NoMetrics | BadRecord)
        read.append(reading)
    return read


def record(engine: str, case: str, at: int = 0) -> AcceptanceRecord:
    reading = readings(engine, BODIES[engine, case])[at]
    assert isinstance(reading, AcceptanceRecord)
    assert reading.tags["case"] == "x"
    return validated(reading)


def altered(engine: str, case: str, *path: str | int, value: object) -> Any:
    body = copy.deepcopy(BODIES[engine, case])
    place = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return body


def test_older_vllm_has_a_sparse_map_on_the_choice() -> None:
    read = record("vllm-choice", "sparse")
    assert (read.engine, read.k, read.histogram) == ("vllm", 3, [39, 1, 0, 3])
    assert (read.steps, read.accepted, read.drafted, read.id) == (43, 10, 129, "chatcmpl-3")
    assert read.completion_tokens == 54


def test_older_vllm_has_one_record_per_choice() -> None:
    first, second = record("vllm-choice", "two-choices"), record("vllm-choice", "two-choices", 1)
    assert (first.id, second.id) == ("chatcmpl-4#0", "chatcmpl-4#1")
    assert first.cluster == second.cluster == "chatcmpl-4"
    assert (first.histogram, second.histogram) == ([2, 1, 0, 1], [0, 0, 0, 0])
    # The body counts the tokens of both together.
    assert first.completion_tokens is second.completion_tokens is None
    assert first.per_step_accepted == [0, 1, 3, 0]


def test_the_first_names_of_older_vllm_are_known() -> None:
    read = record("vllm-choice", "older-names")
    assert (read.k, read.steps, read.accepted, read.drafted) == (2, 250, 413, 500)
    assert read.histogram is None


def test_older_vllm_with_the_flag_off_has_no_metrics() -> None:
    assert readings("vllm-choice", BODIES["vllm-choice", "null"]) == [vllm_choice.NO_STATS]


@pytest.mark.parametrize("histogram", [{"x": 1}, {"-1": 1}, {"256": 1}, {"9" * 40: 1}])
def test_keys_that_are_no_lengths_are_bad(histogram: dict[str, int]) -> None:
    path = ("choices", 0, "speculative_decoding_stats", "acceptance_histogram")
    [reading] = readings("vllm-choice", altered("vllm-choice", "sparse", *path, value=histogram))
    assert isinstance(reading, BadRecord)


def test_sglang_tells_k_by_its_nominal_drafts() -> None:
    read = record("sglang", "extension")
    assert (read.engine, read.k, read.histogram) == ("sglang", 5, [11, 14, 11, 4, 0, 3])
    assert (read.steps, read.accepted, read.accepted_basis) == (43, 63, "counted")
    assert (read.drafted, read.drafted_basis) == (215, "nominal")
    assert read.completion_tokens == read.steps + read.accepted == 106  # type: ignore[operator]
    assert read.tags["finish_reason"] == "stop"


def test_sglang_lists_one_object_per_answer() -> None:
    first, second = record("sglang", "extension-n2"), record("sglang", "extension-n2", 1)
    assert (first.id, second.id, second.cluster) == ("sg-2#0", "sg-2#1", "sg-2")
    assert (second.k, second.histogram) == (5, (5, 0, 5, 0, 5, 0))
    assert second.tags["finish_reason"] == "length"
    assert first.completion_tokens is None


def test_zeros_of_sglang_are_unknown_where_there_is_an_answer() -> None:
    assert readings("sglang", BODIES["sglang", "all-zero"]) == [sglang.ALL_ZERO]
    empty = altered("sglang", "all-zero", "usage", "completion_tokens", value=0)
    [reading] = readings("sglang", empty)
    assert isinstance(reading, AcceptanceRecord)
    assert (reading.steps, reading.accepted) == (0, 0)


def test_sglang_that_was_not_asked_says_nothing() -> None:
    assert readings("sglang", BODIES["sglang", "not-asked-for"]) == [sglang.NOT_ASKED_FOR]


def test_sglang_of_native_bodies_has_the_older_histogram() -> None:
    read = record("sglang", "native")
    assert (read.k, read.histogram, read.steps, read.accepted) == (None, [5, 0, 0, 10], 15, 30)
    assert (read.drafted, read.cached_tokens, read.completion_tokens) == (None, 4, 45)
    assert read.id == "sg-5"
    assert read.tags["finish_reason"] == "length"


def test_steps_alone_give_an_estimate_of_the_accepted() -> None:
    read = record("sglang", "native-verify-only")
    assert (read.steps, read.accepted, read.accepted_basis) == (43, 63, "estimated")
    assert (read.k, read.drafted, read.histogram) == (None, None, None)
    assert read.tags["finish_reason"] == "stop string"


def test_a_list_of_native_bodies_is_read_one_by_one() -> None:
    read = record("sglang", "native-list")
    assert (read.id, read.k, read.accepted) == ("sg-7#0", 3, 30)
    assert readings("sglang", BODIES["sglang", "native-list"])[1] == sglang.NOTHING_SAID


DETAILS = ("sglext", "spec_tokens_details")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("spec_accept_rate", 0.4),
        ("spec_accept_length", 2.2),
        ("spec_correct_drafts_histogram", "x"),
    ],
)
def test_an_identity_of_sglang_that_fails_is_bad(field: str, value: object) -> None:
    body = altered("sglang", "extension", *DETAILS, field, value=value)
    [reading] = readings("sglang", body)
    assert isinstance(reading, BadRecord)


def test_a_ragged_width_of_sglang_leaves_k_unknown() -> None:
    for proposed in (214, 129):
        body = altered("sglang", "extension", *DETAILS, "spec_num_proposed_drafts", value=proposed)
        body["sglext"]["spec_tokens_details"]["spec_accept_rate"] = 63 / proposed
        [reading] = readings("sglang", body)
        assert isinstance(reading, AcceptanceRecord)
        assert (reading.k, reading.drafted) == (None, proposed)


def test_tensorrt_llm_has_its_counters_on_the_choice() -> None:
    read = record("tensorrt-llm", "counters")
    assert (read.engine, read.k, read.histogram) == ("tensorrt-llm", 3, [8, 0, 6, 6])
    assert (read.steps, read.accepted, read.drafted) == (20, 30, 60)
    assert (read.completion_tokens, read.id) == (50, "trt-1")


@pytest.mark.parametrize(
    ("case", "reason"), [("all-zero", tensorrt_llm.ALL_ZERO), ("null", tensorrt_llm.NOTHING_SAID)]
)
def test_zero_and_null_of_tensorrt_llm_are_two_answers(case: str, reason: Reading) -> None:
    assert readings("tensorrt-llm", BODIES["tensorrt-llm", case]) == [reason]


def test_a_rate_of_tensorrt_llm_that_its_counts_do_not_give_is_bad() -> None:
    body = altered("tensorrt-llm", "counters", "choices", 0, "acceptance_rate", value=0.6)
    [reading] = readings("tensorrt-llm", body)
    assert isinstance(reading, BadRecord)
    assert "0.6" in reading.reason
    assert "0.5" in reading.reason


@pytest.mark.parametrize("case", ["native", "openai"])
def test_steps_of_llama_server_are_an_estimate(case: str) -> None:
    read = record("llama-server", case)
    assert (read.engine, read.k, read.histogram) == ("llama.cpp", None, None)
    assert (read.steps, read.steps_basis) == (135, "estimated")
    assert (read.accepted, read.accepted_basis, read.drafted) == (65, "counted", 347)
    assert (read.prompt_tokens, read.completion_tokens) == (21, 200)
    assert read.accepted is not None
    assert read.drafted is not None
    assert read.steps is not None
    assert round(read.accepted / read.drafted, 3) == 0.187
    assert round(1 + read.accepted / read.steps, 2) == 1.48


def test_llama_server_tells_what_came_from_its_cache() -> None:
    assert record("llama-server", "openai").cached_tokens == 20
    assert record("llama-server", "native").tags["finish_reason"] == "length"


def test_llama_server_without_a_draft_has_no_metrics() -> None:
    body = BODIES["llama-server", "no-draft"]
    assert readings("llama-server", body) == [llama_server.NOTHING_DRAFTED]


@pytest.mark.parametrize("value", [201, None, "65", 1.5])
def test_accepted_drafts_of_llama_server_that_cannot_be_are_bad(value: object) -> None:
    body = altered("llama-server", "native", "timings", "draft_n_accepted", value=value)
    [reading] = readings("llama-server", body)
    assert isinstance(reading, BadRecord)


def test_rounds_of_mlx_are_steps() -> None:
    read = record("mlx", "rounds")
    assert (read.engine, read.steps, read.steps_basis) == ("mlx", 30, "counted")
    assert (read.accepted, read.drafted, read.completion_tokens) == (81, 90, 111)
    assert read.tags["method"] == "mtp"


def test_mlx_without_rounds_gives_an_estimate() -> None:
    read = record("mlx", "accepted-only")
    assert (read.steps, read.steps_basis, read.accepted) == (30, "estimated", 81)
    assert read.drafted is None


def test_mlx_without_a_draft_has_no_metrics() -> None:
    assert readings("mlx", BODIES["mlx", "null"]) == [mlx.NOTHING_DRAFTED]


def test_a_typed_list_is_a_histogram() -> None:
    [reading] = readings("plain", [39, 1, 0, 3])
    assert isinstance(reading, AcceptanceRecord)
    read = validated(reading)
    assert (read.engine, read.requests, read.k) == ("typed", None, 3)
    assert (read.steps, read.accepted, read.drafted) == (43, 10, None)


def test_a_typed_object_may_tell_more() -> None:
    read = record("plain", "object")
    assert (read.k, read.steps, read.accepted, read.drafted) == (3, 43, 10, 129)
    assert read.tags == {"case": "x", "method": "ngram", "temperature": 0.8}
    sparse = record("plain", "sparse")
    assert (sparse.k, sparse.histogram) == (4, [39, 1, 0, 3, 0])


@pytest.mark.parametrize(
    "value",
    [[], [1], [1, 2.0], [1, True], [1, None], [[1, 2]], {"histogram": [1]}, {"histogram": {}}, {}],
)
def test_what_is_no_list_of_counts_is_not_recognised(value: object) -> None:
    assert not adapter("plain").recognises(JsonDocument(PLACE, value))
    [reading] = readings("plain", value)
    assert isinstance(reading, BadRecord)
