from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.adapters.vllm_bench import VllmBenchAdapter
from outrider.records.collecting import Collection
from outrider.records.reading import (
    AcceptanceRecord,
    BadRecord,
    NoMetrics,
    Place,
    Reading,
    Scope,
)
from outrider.records.sources.document import JsonDocument, TextDocument
from outrider.records.validation import validated

CASES = Path(__file__).parents[1] / "cases" / "bench"
ADAPTER = VllmBenchAdapter()


def case(name: str) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.json.decode((CASES / name).read_bytes())
    return value


RUN = case("vllm-0.32-ngram.json")
DETAILED = {**RUN, **case("vllm-0.32-ngram-itls.json")}
TOTALS = {
    "completed": 80,
    "total_input_tokens": 1000,
    "total_output_tokens": 48428,
    "request_throughput": 1.5,
    "output_throughput": 400.0,
    "model_id": "m",
}


def reading(result: Any) -> Reading | Collection:
    ((_, told),) = ADAPTER.convert(JsonDocument(Place("result.json"), result))
    return told


def record(result: Any) -> AcceptanceRecord:
    told = reading(result)
    assert isinstance(told, AcceptanceRecord), told
    return validated(told)


def test_a_result_is_the_interval_of_its_run() -> None:
    told = record(RUN)
    assert (told.scope, told.engine, told.k, told.requests) == (Scope.BENCHMARK, "vllm", 3, 16)
    assert (told.steps, told.accepted, told.drafted) == (563, 591, 1689)
    assert told.histogram == (329, 46, 19, 169)
    assert (told.prompt_tokens, told.completion_tokens) == (2039, 1559)


def test_a_peak_below_the_average_means_that_chunks_were_counted() -> None:
    assert record(RUN).tags["chunks_counted_as_tokens"] == "yes"
    assert "chunks_counted_as_tokens" not in record({**RUN, "max_output_tokens_per_s": 120.0}).tags


def test_tags_are_what_the_run_was_and_what_the_user_told() -> None:
    told = record({**RUN, "label": "night", "gpu": "one", "mean_note": "", "max_concurrency": 4})
    assert {key: told.tags[key] for key in told.tags if key != "chunks_counted_as_tokens"} == {
        "model": "smollm2-135m-instruct",
        "backend": "openai-chat",
        "request_rate": "inf",
        "concurrency": 4,
        "label": "night",
        "gpu": "one",
    }


def test_k_1_and_k_8_of_the_same_weights_are_records_of_different_k() -> None:
    one = record(
        {
            **TOTALS,
            "spec_decode_num_drafts": 26407,
            "spec_decode_draft_tokens": 26407,
            "spec_decode_accepted_tokens": 22021,
            "spec_decode_acceptance_length": 1 + 22021 / 26407,
            "spec_decode_acceptance_rate": 100 * 22021 / 26407,
            "spec_decode_per_position_acceptance_rates": [22021 / 26407],
        }
    )
    eight = record(
        {
            **TOTALS,
            "spec_decode_num_drafts": 11043,
            "spec_decode_draft_tokens": 88344,
            "spec_decode_accepted_tokens": 38611,
            "spec_decode_per_position_acceptance_rates": [
                *(0.7617, 0.6158, 0.5125, 0.4243, 0.3640, 0.3094, 0.2722, 0.2365)
            ],
        }
    )
    assert (one.k, one.histogram) == (1, (4386, 22021))
    assert (eight.k, eight.steps, eight.accepted) == (8, 11043, 38611)
    assert eight.histogram is None, "rates of four decimals are no counts"


def test_k_is_evident_where_every_step_drafted_as_much() -> None:
    told = record(
        {
            **TOTALS,
            "total_output_tokens": 16990,
            "spec_decode_num_drafts": 4816,
            "spec_decode_draft_tokens": 33712,
            "spec_decode_accepted_tokens": 12208,
        }
    )
    assert (told.k, told.histogram, told.completion_tokens) == (7, None, 16990)
    assert (told.steps or 0) + (told.accepted or 0) == 17024


def test_a_run_without_speculation_says_so() -> None:
    told = reading(case("vllm-0.32-no-speculation.json"))
    assert isinstance(told, NoMetrics)
    assert "no spec_decode figures" in told.reason
    assert isinstance(reading({**TOTALS, "accept_length": 2.5}), NoMetrics)
    assert isinstance(reading({**TOTALS, "spec_decode_num_drafts": 0,
                               "spec_decode_accepted_tokens": 0}), NoMetrics)  # fmt: skip


def test_a_detailed_result_tells_how_evenly_its_streams_arrived() -> None:
    told = record(DETAILED)
    gaps = [[1000 * gap for gap in itl[1:]] for itl in DETAILED["itls"]]
    every = [gap for each in gaps for gap in each]
    assert told.cadence is not None
    assert (told.cadence.answers, told.cadence.gaps) == (16, len(every))
    assert told.cadence.longest_gap_ms == max(every)
    assert told.cadence.gap_sum_ms == pytest.approx(sum(every))
    variation = sum(pstdev(each) / fmean(each) for each in gaps)
    assert told.cadence.gap_cv_sum == pytest.approx(variation)
    # What the tool itself says, which counts the moment from the role to the first text as a gap.
    roles = sum(1000 * itl[0] for itl in DETAILED["itls"])
    mean_itl_ms = (told.cadence.gap_sum_ms + roles) / (told.cadence.gaps + 16)
    assert mean_itl_ms == pytest.approx(RUN["mean_itl_ms"])


def test_the_events_of_a_detailed_result_are_its_chunks() -> None:
    told = record(DETAILED)
    # Between n events are n - 1 gaps; one event more is the role of the answer, which is no text.
    assert told.chunks == sum(map(len, DETAILED["itls"]))
    completions = record({**DETAILED, "backend": "openai"})
    assert completions.chunks == told.chunks + 16
    assert completions.cadence is not None
    assert completions.cadence.gaps == told.chunks


def test_requests_that_failed_half_way_have_no_cadence() -> None:
    failed = {
        **DETAILED,
        "completed": 15,
        "failed": 1,
        "output_lens": [0, *DETAILED["output_lens"][1:]],
    }
    told = record(failed)
    assert told.cadence is not None
    assert told.cadence.answers == 15
    assert told.chunks == sum(map(len, DETAILED["itls"][1:]))


@pytest.mark.parametrize(
    "change",
    [
        {"itls": None},
        {"itls": DETAILED["itls"][1:]},
        {"itls": [0.1] * 16},
        {"itls": [[]] * 16},
        {"output_lens": None},
        {"backend": "a new one"},
        {"backend": None},
    ],
    ids=repr,
)
def test_a_result_that_does_not_tell_its_gaps_apart_has_none(change: dict[str, Any]) -> None:
    told = record({**DETAILED, **change})
    assert (told.cadence, told.chunks) == (None, None)
    assert told.steps == 563


@pytest.mark.parametrize("gap", [-0.1, float("nan"), "0.1", None])
def test_a_gap_that_is_no_time_makes_the_result_bad(gap: Any) -> None:
    told = reading({**DETAILED, "itls": [[0.1, 0.1, gap], *DETAILED["itls"][1:]]})
    assert isinstance(told, BadRecord)
    assert told.reason.startswith("itls: a gap between events is no time")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spec_decode_acceptance_rate", 0.349911190053286),
        ("spec_decode_acceptance_length", 3.0),
        ("spec_decode_acceptance_length", "2"),
        ("spec_decode_num_drafts", -1),
        ("spec_decode_num_drafts", None),
        ("spec_decode_accepted_tokens", 2.5),
        ("spec_decode_draft_tokens", 10**30 + 1),
        ("spec_decode_per_position_acceptance_rates", [41.5, 33.4, 30.0]),
        ("spec_decode_per_position_acceptance_rates", {"0": 0.4}),
    ],
)
def test_a_figure_that_contradicts_the_others_makes_the_result_bad(key: str, value: Any) -> None:
    assert isinstance(reading({**RUN, key: value}), BadRecord)


def test_it_recognises_results_and_nothing_else() -> None:
    assert ADAPTER.recognises(JsonDocument(Place("x"), RUN))
    for name in ("guidellm-0.8.json", "aiperf-0.13.json"):
        assert not ADAPTER.recognises(JsonDocument(Place("x"), case(name)))
    body = {"choices": [], "usage": {}, "metrics": {"speculative_decoding": None}}
    for value in (body, [39, 1, 0, 3], None, "completed", [RUN]):
        assert not ADAPTER.recognises(JsonDocument(Place("x"), value))
    assert not ADAPTER.recognises(TextDocument(Place("x"), "completed", lambda: iter(())))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(
    JSON
    | st.dictionaries(st.sampled_from(sorted(DETAILED)), JSON).map(
        lambda part: {**DETAILED, **part}
    )
    | st.lists(JSON).map(lambda gaps: {**DETAILED, "itls": [gaps, *DETAILED["itls"][1:]]})
)
def test_no_json_raises(value: Any) -> None:
    document = JsonDocument(Place("x"), value)
    ADAPTER.recognises(document)
    assert list(ADAPTER.convert(document))
