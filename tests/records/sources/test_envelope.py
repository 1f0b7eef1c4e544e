"""Envelopes are opened and tell what they know; bodies are never taken for one."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from outrider.records.reading import NoMetrics, Place, TagValue
from outrider.records.sources.document import JsonDocument, StreamFacts
from outrider.records.sources.envelope import is_wrapped, unwrapped
from outrider.records.sources.sse import Framed

PLACE = Place("log.jsonl", 7)
BODY = {"id": "a", "choices": [], "usage": {"completion_tokens": 3}}
REQUEST = {
    "model": "m",
    "temperature": 0.7,
    "n": 2,
    "stream": False,
    "max_tokens": 64,
    "seed": 1,
    "top_p": 0.9,
    "stop": ["\n"],
    "messages": [],
}
PARAMETERS: dict[str, TagValue] = {
    "temperature": 0.7,
    "n": 2,
    "stream": False,
    "max_tokens": 64,
    "stop": "yes",
}
STREAM = """data: {"id": "a", "choices": [{"text": "x"}]}

data: {"id": "a", "usage": {}}

data: [DONE]
"""


def opened(envelope: Any) -> Any:
    assert is_wrapped(envelope)
    (one,) = unwrapped(JsonDocument(PLACE, envelope))
    return one


@pytest.mark.parametrize(
    "envelope",
    [
        {"request": REQUEST, "response": BODY},
        {"request": REQUEST, "body": BODY},
        {"request": REQUEST, "response_body": BODY},
        {"request": json.dumps(REQUEST), "response": json.dumps(BODY)},
        {"request_body": json.dumps(REQUEST), "response_body": json.dumps(BODY)},
        {"request": {"method": "POST", "body": REQUEST}, "response": {"status": 200, "body": BODY}},
        {
            "request": {"url": "/v1", "body": json.dumps(REQUEST)},
            "response": {"headers": {}, "body": json.dumps(BODY)},
        },
    ],
)
def test_a_proxy_log_gives_the_body_and_the_request(envelope: dict[str, object]) -> None:
    assert opened(envelope) == JsonDocument(PLACE, BODY, tags=PARAMETERS, request=REQUEST)


def test_a_batch_output_gives_the_body() -> None:
    envelope = {
        "id": "batch_req_1",
        "custom_id": "request-1",
        "response": {"status_code": 200, "request_id": "r", "body": BODY},
        "error": None,
    }
    assert opened(envelope) == JsonDocument(PLACE, BODY)


@pytest.mark.parametrize(
    "envelope",
    [
        {"custom_id": "request-1", "response": None, "error": {"message": "no"}},
        {"request": REQUEST, "response": None},
    ],
)
def test_a_request_without_an_answer_has_no_metrics(envelope: dict[str, object]) -> None:
    assert opened(envelope) == (
        PLACE,
        NoMetrics("the request failed or its answer was not kept"),
    )


def test_an_event_stream_in_an_envelope_is_put_together() -> None:
    document = opened({"request": REQUEST, "response": STREAM, "category": "code"})
    assert document.place == PLACE
    assert document.value == {"id": "a", "usage": {}, "choices": [{"index": 0, "text": "x"}]}
    assert document.stream == StreamFacts(1, True, True)
    assert document.tags == {**PARAMETERS, "category": "code"}


def test_several_answers_in_an_envelope_share_its_tags() -> None:
    native = {"text": "x", "meta_info": {}}
    envelope = {"request": {}, "response": [native, native], "language": "de"}
    found = [*unwrapped(JsonDocument(PLACE, envelope))]
    assert found == [JsonDocument(PLACE, native, tags={"language": "de"}, request={})] * 2


def test_tags_are_what_segments_can_be_made_by() -> None:
    beside = {
        "category": "code",
        "concurrency": 8,
        "K": 3,
        "method": "eagle3",
        "cached": True,
        "metadata": {"language": "de", "user_id": "u1", "weight": 0.5},
        "tags": {"tag": "night"},
    }
    envelope = {
        "response": BODY,
        **beside,
        "request_id": "7",
        "traceId": "x",
        "created_at": "2026-01-01T10:00:00Z",
        "timestamp": 1796075603,
        "received": "2026-01-01 10:00:00",
        "trace": "0b7c1b9e-7d6c-4a2e-9a39-6a56a5f5f6ff",
        "note": "x" * 65,
        "status": 200,
        "latency_s": 0.25,
        "path": None,
        "headers": {},
        "empty": "",
    }
    assert opened(envelope).tags == {
        "category": "code",
        "concurrency": 8,
        "K": 3,
        "method": "eagle3",
        "cached": True,
        "language": "de",
        "tag": "night",
    }
    assert opened({"response": BODY, "method": "POST"}).tags == {}


def test_parameters_of_a_native_request_are_found() -> None:
    request = {
        "sampling_params": {"temperature": 0, "max_new_tokens": 5, "stop": []},
        "metadata": {"kind": "chat"},
    }
    tags = {"temperature": 0, "max_tokens": 5, "kind": "chat"}
    assert opened({"request": request, "response": BODY}).tags == tags


@pytest.mark.parametrize(
    "value",
    [
        BODY,
        {**BODY, "request": {}, "response": {}},
        {"text": "x", "meta_info": {}, "response": "x"},
        {"content": "x", "timings": {}, "body": {}},
        [39, 1, 0, 3],
        {"histogram": [1]},
        {},
    ],
)
def test_a_body_is_no_envelope(value: object) -> None:
    assert not is_wrapped(value)


@pytest.mark.parametrize(
    "value",
    [
        {"model": "m", "response": "once upon a time", "done": True},
        {"model": "m", "response": '{"answer": "in json"}', "done": True},
        {"model": "m", "response": "{not json", "done": True},
        {"custom_id": "1", "method": "POST", "body": {"model": "m", "messages": []}},
        {"body": 3},
        {"response": []},
        {"response": [3, {}]},
        {"response": {"body": {"body": {}}}},
    ],
)
def test_what_only_looks_like_an_envelope_stays_as_it_is(value: dict[str, object]) -> None:
    document = JsonDocument(PLACE, value)
    assert [*unwrapped(document)] == [document]


def test_the_lines_of_a_file_keep_their_own_places(frame: Callable[[bytes], list[Framed]]) -> None:
    found = frame(b"\n".join(json.dumps({"response": BODY}).encode() for _ in range(3)))
    places = [
        inner.place.line
        for one in found
        if isinstance(one, JsonDocument)
        for inner in unwrapped(one)
        if isinstance(inner, JsonDocument)
    ]
    assert places == [1, 2, 3]
