import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.adapters import vllm_absence as why
from outrider.records.adapters.vllm import VllmAdapter
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Place, Reading
from outrider.records.sources.document import JsonDocument, StreamFacts, TextDocument
from outrider.records.validation import validated

PLACE = Place("answers.jsonl", 7)
CASES = Path(__file__).parents[1] / "cases"


def _captured() -> dict[str, JsonDocument]:
    documents = {}
    for name in ("bodies", "streams"):
        for line in (CASES / "vllm" / f"{name}.jsonl").read_text("utf-8").splitlines():
            case = json.loads(line)
            stream = StreamFacts(**case["stream"]) if "stream" in case else None
            documents[case["case"]] = JsonDocument(
                PLACE, case["body"], stream=stream, request=case["request"]
            )
    return documents


CAPTURED = _captured()
SUMMARY = json.loads((CASES / "other-engines.jsonl").read_text("utf-8").splitlines()[0])["body"]


def reading_of(document: JsonDocument) -> Reading:
    [(place, reading)] = VllmAdapter().convert(document)
    assert place == document.place
    assert isinstance(reading, AcceptanceRecord | NoMetrics | BadRecord)
    return reading


def record_of(document: JsonDocument) -> AcceptanceRecord:
    reading = reading_of(document)
    assert isinstance(reading, AcceptanceRecord)
    return validated(reading)


def changed(**changes: Any) -> JsonDocument:
    """Return the summary body with other counts."""
    body = copy.deepcopy(SUMMARY)
    body["metrics"]["speculative_decoding"].update(changes)
    return JsonDocument(PLACE, body)


def with_counts(histogram: list[int], text: str) -> JsonDocument:
    """Return a body whose counts follow from the histogram, all drafts at full length."""
    body = copy.deepcopy(SUMMARY)
    steps, k = sum(histogram), len(histogram) - 1
    accepted = sum(length * count for length, count in enumerate(histogram))
    body["choices"][0]["message"]["content"] = text
    body["metrics"]["speculative_decoding"] = {
        "mean_acceptance_length": 1 + accepted / steps if steps else 1.0,
        "draft_acceptance_rate": accepted / (k * steps) if steps else 0.0,
        "acceptance_histogram": histogram,
        "num_spec_steps": steps,
        "num_accepted_draft_tokens": accepted,
        "num_draft_tokens": k * steps,
        "num_spec_tokens": k,
    }
    return JsonDocument(PLACE, body)


def test_a_summary_tells_its_counts() -> None:
    record = record_of(JsonDocument(PLACE, SUMMARY, tags={"temperature": 0.8, "streamed": "?"}))
    assert (record.engine, record.id, record.k) == ("vllm", "chatcmpl-1", 3)
    assert (record.histogram, record.steps, record.accepted) == ([39, 1, 0, 3], 43, 10)
    assert (record.drafted, record.drafted_basis) == (129, "counted")
    assert (record.prompt_tokens, record.completion_tokens, record.cached_tokens) == (20, 54, 16)
    assert record.per_step_accepted is None
    assert record.per_step_drafted is None
    assert record.draft_table is None
    assert record.repetitive is None
    assert record.chunks is None
    assert record.tags == {
        "temperature": 0.8,
        "model": "m",
        "finish_reason": "stop",
        "streamed": "no",
    }


@pytest.mark.parametrize(
    ("case", "histogram", "drafted", "tokens", "chunks"),
    [
        ("code-fib.t0.n1", [44, 7, 1, 4], 167, 128, None),
        ("prose-story.t0.n1", [28, 2, 2, 10], 125, 128, None),
        ("copy-verbatim.t0.n1", [17, 4, 3, 23], 141, 126, None),
        ("json-person.t0.n1", [5, 5, 1, 0], 24, 51, None),
        ("json-ticket.t08.n1", [0, 3, 1, 1], 12, 46, None),
        ("list-numbers.t0.n1", [82, 4, 8, 0], 282, 122, None),
        ("code-fib.t08.n1", [21, 9, 2, 11], 129, 128, None),
        ("copy-verbatim.t08.n1", [13, 2, 1, 17], 99, 94, None),
        ("edge.max_tokens-1", [0, 0, 0, 0], 0, 1, None),
        ("edge.max_tokens-2", [0, 0, 0, 1], 3, 2, None),
        ("edge.max_tokens-5", [0, 0, 0, 1], 3, 5, None),
        ("edge.ignore_eos", [13, 1, 2, 22], 114, 128, None),
        ("edge.return_token_ids", [0, 0, 0, 6], 18, 24, None),
        ("edge.completions", [8, 2, 4, 0], 40, 48, None),
        ("code-fib.t0.n1.stream", [44, 7, 1, 4], 167, 128, 107),
        ("edge.completions-stream", [8, 2, 4, 0], 40, 48, 40),
        ("edge.return_token_ids-stream", [0, 0, 0, 6], 18, 24, 7),
        ("json-person.t08.n1.stream", [1, 5, 2, 0], 17, 52, 42),
        ("list-lines.t0.n1.stream-continuous", [0, 0, 1, 2], 9, 10, 3),
    ],
)
def test_captured_answers_are_read(
    case: str, histogram: list[int], drafted: int, tokens: int, chunks: int | None
) -> None:
    record = record_of(CAPTURED[case])
    assert (record.k, record.histogram, record.drafted) == (3, histogram, drafted)
    assert (record.completion_tokens, record.chunks) == (tokens, chunks)
    assert record.tags["model"] == "smollm2-135m-instruct"
    assert record.tags["engine_version"] == "0.32.0"
    assert record.tags["streamed"] == ("no" if chunks is None else "yes")
    assert (record.per_step_accepted is None) == (record.steps == 0)


def test_an_answer_of_one_token_counts_with_no_steps() -> None:
    record = record_of(CAPTURED["edge.max_tokens-1"])
    assert (record.steps, record.accepted, record.drafted) == (0, 0, 0)
    assert record.tags["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("code-hints.t0.n2", why.ERROR),
        ("edge.min_p", why.ERROR),
        ("edge.context-overflow", why.ERROR),
        ("edge.unknown-model", why.ERROR),
        ("code-hints.t08.n2", why.SEVERAL_ANSWERS),
        ("copy-verbatim.t08.n2.stream", why.SEVERAL_ANSWERS),
        ("edge.completions-two-prompts", why.SEVERAL_ANSWERS),
        ("edge.stop-string", why.STOP_STRING),
        ("edge.stop-string-stream", why.STOP_STRING),
        ("copy-verbatim.t0.n1.stream-nousage", why.NO_USAGE),
        ("baseline.code-fib.t0.n1", why.FLAG_OFF),
        ("baseline.code-fib.t0.n1.stream", why.FLAG_OFF),
    ],
)
def test_captured_answers_without_metrics_say_why(case: str, reason: Reading) -> None:
    assert reading_of(CAPTURED[case]) == reason


BARE: dict[str, Any] = {
    "object": "chat.completion",
    "choices": [{"index": 0, "finish_reason": "stop", "stop_reason": None}],
    "usage": {"completion_tokens": 5},
}
OPEN = {**BARE, "choices": [{"index": 0, "finish_reason": None}]}
ENDED = StreamFacts(chunks=3, ended=True, usage_seen=True)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (JsonDocument(PLACE, BARE, request={"n": 2}), why.SEVERAL_ANSWERS),
        (JsonDocument(PLACE, BARE, request={"prompt": ["a", "b"]}), why.SEVERAL_ANSWERS),
        (JsonDocument(PLACE, BARE, request={"prompt": [11, 12, 13]}), why.FLAG_OFF),
        (JsonDocument(PLACE, BARE, request={"use_beam_search": True}), why.SEVERAL_ANSWERS),
        (JsonDocument(PLACE, BARE, request={"n": 1, "prompt": "a"}), why.FLAG_OFF),
        (JsonDocument(PLACE, BARE, stream=ENDED), why.FLAG_OFF),
        (
            JsonDocument(PLACE, BARE, stream=StreamFacts(3, ended=True, usage_seen=False)),
            why.NO_USAGE,
        ),
        (JsonDocument(PLACE, BARE, stream=StreamFacts(3, ended=False, usage_seen=False)), why.CUT),
        # Usage with every event, and then the connection broke.
        (JsonDocument(PLACE, OPEN, stream=StreamFacts(3, ended=False, usage_seen=True)), why.CUT),
        (JsonDocument(PLACE, {**OPEN, "usage": None}), why.SINGLE_EVENT),
        (JsonDocument(PLACE, {**BARE, "metrics": {"queue_time_ms": 1.5}}), why.TIMING_ONLY),
        (
            JsonDocument(PLACE, {**BARE, "metrics": {"speculative_decoding": None}}),
            why.TIMING_ONLY,
        ),
        (JsonDocument(PLACE, {"object": "error", "message": "no", "code": 400}), why.ERROR),
    ],
)
def test_the_explanation_that_fits_is_given(document: JsonDocument, reason: Reading) -> None:
    assert VllmAdapter().recognises(document)
    assert reading_of(document) == reason


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"mean_acceptance_length": 1.24}, ("1.24", "1.2325581395348837")),
        ({"draft_acceptance_rate": 0.08}, ("0.08", "0.07751937984496124")),
        ({"mean_acceptance_length": "high"}, ("'high'", "43")),
        ({"num_accepted_draft_tokens": 10**400}, ("mean_acceptance_length", "1.2325581395348837")),
        ({"per_step_accepted": 5}, ("5", "list")),
    ],
)
def test_a_declared_figure_that_its_counts_do_not_give_is_bad(
    changes: dict[str, Any], named: tuple[str, str]
) -> None:
    reading = reading_of(changed(**changes))
    assert isinstance(reading, BadRecord)
    assert all(part in reading.reason for part in named)


def test_a_declared_figure_may_be_rounded_a_little_or_missing() -> None:
    rounded = changed(mean_acceptance_length=1.2325582, draft_acceptance_rate=None)
    assert record_of(rounded).accepted == 10


def test_steps_by_draft_length_become_a_table() -> None:
    full = [[0, 0, 0, 0], [4, 1, 0, 0], [0, 0, 0, 0], [35, 0, 0, 3]]
    for told in ({"1": [4, 1], "3": [35, 0, 0, 3]}, [[], [4, 1], [], [35, 0, 0, 3]]):
        document = changed(
            acceptance_histogram_by_draft_length=told,
            num_draft_tokens=119,
            draft_acceptance_rate=10 / 119,
        )
        assert record_of(document).draft_table == full


@pytest.mark.parametrize(
    "told",
    [
        5,
        "x",
        {"a": [1]},
        {"3": 5},
        {"9": [1]},
        {"1": [1, 0, 5]},
        [[1, 2, 3, 4, 5]],
        {"3": {"0": 40}},
    ],
)
def test_steps_by_draft_length_of_another_shape_are_left_out(told: object) -> None:
    document = changed(acceptance_histogram_by_draft_length=told)
    assert record_of(document).draft_table is None


def test_text_is_only_judged_where_all_steps_are_at_both_ends() -> None:
    assert record_of(with_counts([5, 0, 0, 4], "!" * 60)).repetitive is True
    assert (
        record_of(with_counts([5, 0, 0, 4], "A lighthouse stands at the point.")).repetitive
        is False
    )
    assert record_of(with_counts([9, 0, 0, 0], "the " * 40)).repetitive is True
    assert record_of(with_counts([5, 1, 0, 4], "!" * 60)).repetitive is None
    assert record_of(with_counts([4, 0, 0, 3], "!" * 60)).repetitive is None
    assert record_of(with_counts([5, 0, 0, 4], "")).repetitive is None


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=17))
def test_whatever_a_server_counts_is_read_back(histogram: list[int]) -> None:
    record = record_of(with_counts(histogram, "text"))
    assert record.histogram == histogram
    assert record.k == len(histogram) - 1
    assert record.steps == sum(histogram)


@pytest.mark.parametrize("value", [None, 5, "x", [], [1, 2], {}, True])
def test_what_is_no_body_is_bad_when_forced(value: object) -> None:
    assert not VllmAdapter().recognises(JsonDocument(PLACE, value))
    assert isinstance(reading_of(JsonDocument(PLACE, value)), BadRecord | NoMetrics)


def test_text_is_bad_when_forced() -> None:
    document = TextDocument(PLACE, "hello", lambda: iter([(1, "hello")]))
    assert not VllmAdapter().recognises(document)
    [(_, reading)] = VllmAdapter().convert(document)
    assert isinstance(reading, BadRecord)


def test_several_answers_with_counts_of_their_own_are_a_record_each() -> None:
    body = copy.deepcopy(SUMMARY)
    counted = body.pop("metrics")["speculative_decoding"]
    other = dict(counted, num_spec_steps=1, num_accepted_draft_tokens=0, num_draft_tokens=1)
    other["acceptance_histogram"] = [1] + [0] * counted["num_spec_tokens"]
    other |= {"mean_acceptance_length": 1.0, "draft_acceptance_rate": 0.0}
    text = {"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    body["choices"] = [
        {"index": place, **text, "metrics": {"speculative_decoding": each}}
        for place, each in enumerate((counted, other))
    ]
    body["choices"].append({"index": 2, **text, "metrics": None})
    first, second, third = (
        reading for _, reading in VllmAdapter().convert(JsonDocument(PLACE, body))
    )
    assert isinstance(first, AcceptanceRecord)
    assert isinstance(second, AcceptanceRecord)
    assert (first.steps, second.steps) == (counted["num_spec_steps"], 1)
    assert first.accepted == counted["num_accepted_draft_tokens"]
    assert isinstance(third, NoMetrics)
