"""An event stream reads like the plain body that it is pieces of."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outrider.records.sources.document import JsonDocument, StreamFacts
from outrider.records.sources.sse import MOST_OPEN, Framed

FrameBytes = Callable[[bytes], list[Framed]]


def events(*values: object, ended: bool = True) -> bytes:
    body = "".join(f"data: {json.dumps(value)}\n\n" for value in values)
    return (body + ("data: [DONE]\n\n" if ended else "")).encode()


def chunk(identity: str, **others: object) -> dict[str, object]:
    return {"id": identity, "object": "chat.completion.chunk", "choices": [], **others}


def content(identity: str, text: str, index: int = 0) -> dict[str, object]:
    return chunk(identity, choices=[{"index": index, "delta": {"content": text}}])


def only(found: list[Framed]) -> JsonDocument:
    (one,) = found
    assert isinstance(one, JsonDocument), one
    return one


def documents(found: list[Framed]) -> list[JsonDocument]:
    return [one for one in found if isinstance(one, JsonDocument)]


def test_token_ids_of_a_real_stream_are_put_together(frame: FrameBytes, cases: Path) -> None:
    document = only(frame((cases / "sse-token-ids.sse").read_bytes()))
    (choice,) = document.value["choices"]
    assert len(choice["token_ids"]) == document.value["usage"]["completion_tokens"] == 24
    assert choice["message"]["content"].startswith(
        "The lighthouse at Carrow Point was built in 1874"
    )
    assert choice["message"]["role"] == "assistant"
    assert choice["finish_reason"] == "length"
    speculation = document.value["metrics"]["speculative_decoding"]
    # One chunk for each of the steps, and one for the prefill.
    assert document.stream == StreamFacts(speculation["num_spec_steps"] + 1, True, True)


def test_the_last_usage_of_a_real_stream_counts(frame: FrameBytes, cases: Path) -> None:
    document = only(frame((cases / "sse-continuous-usage.sse").read_bytes()))
    assert document.value["usage"]["completion_tokens"] == 10
    assert document.value["metrics"]["speculative_decoding"]["num_spec_tokens"] == 3
    assert document.stream == StreamFacts(3, True, True, 1)


def test_the_stop_string_of_a_real_stream_is_kept(frame: FrameBytes, cases: Path) -> None:
    document = only(frame((cases / "sse-stop-string.sse").read_bytes()))
    (choice,) = document.value["choices"]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", "granite")
    assert "metrics" not in document.value


@pytest.mark.parametrize("name", ["sse-token-ids", "sse-continuous-usage", "sse-stop-string"])
def test_a_capture_without_blank_lines_reads_alike(
    frame: FrameBytes, cases: Path, name: str
) -> None:
    data = (cases / f"{name}.sse").read_bytes()
    bare = b"\r\n".join(line for line in data.splitlines() if line)
    assert only(frame(bare)) == only(frame(data))


def test_real_streams_in_one_file_are_told_apart(frame: FrameBytes, cases: Path) -> None:
    parts = [path.read_bytes() for path in sorted(cases.glob("sse-*.sse"))]
    found = documents(frame(b"".join(parts)))
    alone = [only(frame(part)) for part in parts]
    assert [one.value for one in found] == [one.value for one in alone]
    assert [one.stream for one in found] == [one.stream for one in alone]


def test_a_stream_cut_anywhere_says_that_it_did_not_end(frame: FrameBytes, cases: Path) -> None:
    data = (cases / "sse-continuous-usage.sse").read_bytes()
    for cut in range(data.index(b"\n"), data.index(b"data: [DONE]"), 7):
        (document,) = documents(frame(data[:cut]))
        assert document.stream is not None
        assert not document.stream.ended


def test_interleaved_streams_are_told_apart_by_id(frame: FrameBytes) -> None:
    found = documents(
        frame(
            events(content("a", "x"), content("b", "1"), content("a", "y"))
            + events(content("b", "2"), chunk("b", usage={"completion_tokens": 2}))
        )
    )
    texts = {one.value["id"]: one.value["choices"][0]["message"]["content"] for one in found}
    assert texts == {"a": "xy", "b": "12"}
    assert all(one.stream is not None and one.stream.ended for one in found)


def test_streams_that_never_end_do_not_pile_up(frame: FrameBytes) -> None:
    many = MOST_OPEN * 3
    data = events(*(content(str(number), "x") for number in range(many)), ended=False)
    assert [one.value["id"] for one in documents(frame(data))] == [*map(str, range(many))]


def test_choices_are_kept_apart(frame: FrameBytes) -> None:
    value = only(
        frame(events(content("a", "x", 0), content("a", "1", 1), content("a", "y", 0)))
    ).value
    assert [(one["index"], one["message"]["content"]) for one in value["choices"]] == [
        (0, "xy"),
        (1, "1"),
    ]


def test_counters_on_the_choice_are_the_last_ones(frame: FrameBytes) -> None:
    def event(text: str, **counters: Any) -> dict[str, object]:
        return {"id": "a", "choices": [{"index": 0, "text": text, **counters}]}

    data = events(
        event("x", num_spec_steps=1), event("y", num_spec_steps=2), event("", num_spec_steps=None)
    )
    document = only(frame(data))
    (choice,) = document.value["choices"]
    assert choice == {"index": 0, "num_spec_steps": 2, "text": "xy"}
    assert document.stream == StreamFacts(2, True, False)


def test_native_sglang_streams_repeat_their_text(frame: FrameBytes) -> None:
    def event(text: str, tokens: int, finish: object = None) -> dict[str, object]:
        meta = {"id": "r", "completion_tokens": tokens, "spec_verify_ct": tokens // 2}
        return {"text": text, "meta_info": {**meta, "finish_reason": finish}}

    document = only(
        frame(events(event("a", 1), event("a b", 3), event("a b", 4, {"type": "stop"})))
    )
    assert document.value["text"] == "a b"
    assert document.value["meta_info"]["completion_tokens"] == 4
    assert "choices" not in document.value
    assert document.stream == StreamFacts(2, True, True, 1)


def test_several_native_answers_end_at_one_mark(frame: FrameBytes) -> None:
    def event(identity: str, finish: object) -> dict[str, object]:
        return {"text": "a", "meta_info": {"id": identity, "finish_reason": finish}}

    data = events(event("r0", None), event("r1", None), event("r0", "stop"), event("r1", "stop"))
    found = documents(frame(data))
    assert [one.value["meta_info"]["id"] for one in found] == ["r0", "r1"]
    assert all(one.stream is not None and one.stream.ended for one in found)


def test_native_llama_streams_end_with_stop(frame: FrameBytes) -> None:
    data = events(
        {"content": "a", "stop": False},
        {"content": "b", "stop": False},
        {"content": "", "stop": True, "timings": {"draft_n": 3}},
        {"content": "c", "stop": True, "timings": {"draft_n": 4}},
        ended=False,
    )
    first, second = documents(frame(data))
    assert first.value == {"content": "ab", "stop": True, "timings": {"draft_n": 3}}
    assert first.stream == StreamFacts(2, True, True)
    assert second.value["content"] == "c"


def test_an_event_may_span_lines_and_comments_are_skipped(frame: FrameBytes) -> None:
    data = (
        b": ping\n\nevent: message\nid: 7\n"
        b'data: {"id": "a",\ndata: "usage":\ndata: {"n": 1}}\n\n: ping\n\n'
    )
    assert only(frame(data)).value == {"id": "a", "usage": {"n": 1}}


def test_a_broken_event_is_listed_and_the_stream_is_read(frame: FrameBytes) -> None:
    data = events(content("a", "x"), ended=False) + b'data: {"id": "a", "cho\n\n'
    found = frame(data + events(content("a", "y")))
    (document,) = documents(found)
    assert document.value["choices"][0]["message"]["content"] == "xy"
    (bad,) = [one for one in found if isinstance(one, tuple)]
    assert bad[0].line == 3
    assert "cut off" in bad[1].reason


def test_chunks_as_json_lines_are_one_stream(frame: FrameBytes) -> None:
    rows = [content("a", "x"), content("a", "y"), chunk("a", usage={"completion_tokens": 2})]
    for data in ("\n".join(map(json.dumps, rows)), json.dumps(rows)):
        value = only(frame(data.encode())).value
        assert value["choices"][0]["message"]["content"] == "xy"
        assert value["usage"] == {"completion_tokens": 2}


def test_streams_quoted_in_json_lines_are_read(frame: FrameBytes, cases: Path) -> None:
    parts = [path.read_text(encoding="utf-8") for path in sorted(cases.glob("sse-*.sse"))]
    found = documents(frame("\n".join(map(json.dumps, parts)).encode()))
    assert [one.place.line for one in found] == [1, 2, 3]
    assert [one.value for one in found] == [only(frame(part.encode())).value for part in parts]


def test_bodies_and_streams_mix_in_one_file(frame: FrameBytes) -> None:
    data = b'{"id": "p", "choices": []}\n' + events(content("a", "x")) + b'{"id": "q"}\n'
    assert [one.value["id"] for one in documents(frame(data))] == ["p", "a", "q"]


@pytest.mark.parametrize(
    "event",
    [
        5,
        [],
        None,
        {"choices": 3},
        {"choices": [3, {"index": []}]},
        {"id": [], "text": {}},
        {"choices": [{"delta": {"content": {}, "role": 3, "tool_calls": []}}], "meta_info": 4},
    ],
)
def test_odd_events_do_not_raise(frame: FrameBytes, event: object) -> None:
    assert frame(events({"id": "a"}, event, {"id": "a"}))
