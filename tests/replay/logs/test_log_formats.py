"""What each format of a log reads as."""

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.replay.logs.reading import Letters, answer, ids, read, read_rows, reason, said

from outrider.errors import InvalidSetting
from outrider.replay.logs.reading import LogReader
from outrider.replay.logs.registry import FORMATS, log_format

ROW = {"prompt_token_ids": [1, 2, 3], "completion_token_ids": [4, 5], "kind": "chat"}


def body(**more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"content": "yes"}, "finish_reason": "stop"}
    return {"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice], **more}


def test_token_ids_are_read_as_they_are_with_their_tags(tmp_path: Path) -> None:
    [found] = read_rows(tmp_path, {**ROW, "temperature": 0.5, "k": 4, "id": "x"})
    assert ids(found) == ([1, 2, 3], [4, 5])
    assert answer(found).tags == {"kind": "chat", "temperature": 0.5}
    assert not answer(found).retokenized


@pytest.mark.parametrize(
    ("told", "limit"),
    [
        ({}, None),
        ({"max_tokens": 9}, 9),
        ({"max_tokens": 1}, None),
        ({"finish_reason": "length"}, 2),
        ({"finish_reason": "stop"}, None),
        ({"max_completion_tokens": 7, "max_tokens": 9}, 7),
    ],
)
def test_the_limit_is_what_was_asked_or_where_the_answer_was_cut(
    told: dict[str, Any], limit: int | None, tmp_path: Path
) -> None:
    [found] = read_rows(tmp_path, {**ROW, **told})
    assert answer(found).max_tokens == limit


@pytest.mark.parametrize(
    ("time", "seconds"),
    [(1.5, 1.5), ("2026-01-01T00:00:01+00:00", 1767225601.0), ("soon", None), (True, None)],
)
def test_times_are_read_as_seconds(time: object, seconds: float | None, tmp_path: Path) -> None:
    [found] = read_rows(tmp_path, {**ROW, "timestamp": time})
    assert answer(found).timestamp_s == seconds


def test_text_is_encoded_and_said_to_be(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "hi"}]
    [plain, chat] = read_rows(
        tmp_path,
        {"prompt": "ab", "completion": "cd"},
        {"messages": messages, "response": "yo", "kind": "chat"},
    )
    assert said(plain) == ("ab", "cd")
    assert said(chat) == ("user:hi\x01", "yo")
    assert answer(chat).retokenized
    assert answer(chat).tags == {"kind": "chat"}


@pytest.mark.parametrize(
    "said_", ['{"text": "a", "error": "none"}', "data: 5", '{"content": []}', '[{"text": "a"}]']
)
def test_an_answer_that_is_json_is_what_was_said(said_: str, tmp_path: Path) -> None:
    plain, with_ids = read_rows(
        tmp_path,
        {"prompt": "ab", "response": said_},
        {"prompt_token_ids": [1], "completion_token_ids": [2, 3], "response": said_},
    )
    assert said(plain) == ("ab", said_)
    assert ids(with_ids) == ([1], [2, 3])


def test_a_body_beside_a_prompt_is_a_body(tmp_path: Path) -> None:
    told = body(prompt_token_ids=[7])
    told["choices"][0]["token_ids"] = [8, 9]
    [found] = read_rows(tmp_path, {"prompt": "ab", "response": json.dumps(told)})
    assert ids(found) == ([7], [8, 9])


def test_choices_beside_token_ids_are_no_body(tmp_path: Path) -> None:
    quiz = {"prompt_token_ids": [1], "completion_token_ids": [2, 3], "choices": ["A", "B"]}
    [found] = read_rows(tmp_path, quiz)
    assert ids(found) == ([1], [2, 3])


def test_an_answer_before_any_message_is_named(tmp_path: Path) -> None:
    [found] = read_rows(tmp_path, {"messages": [{"role": "assistant", "content": "yo"}]})
    assert reason(found) == "no message stands before the answer"


def test_messages_in_parts_and_those_without_content_are_text(tmp_path: Path) -> None:
    parts = [
        {"role": "user", "content": [{"type": "text", "text": "ok"}, {"type": "image_url"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "x"}]},
    ]
    [found] = read_rows(tmp_path, {"messages": parts, "response": "yo"})
    assert said(found) == ("user:ok|assistant:\x01", "yo")


def test_a_cell_with_what_was_said_is_text_also_where_it_is_json(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerows(
            [
                ("prompt", "completion"),
                ("[1, 2]", '{"a": [1]}'),
                ('[{"role": "user", "content": "hi"}]', "[1, 2]"),
            ]
        )
    (_, first), (_, second) = read(LogReader(encoder=Letters()), path)
    assert said(first) == ("[1, 2]", '{"a": [1]}')
    assert said(second) == ("user:hi\x01", "[1, 2]")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_requests_and_responses_are_read_from_columns(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"log.{kind}"
    told = {"prompt_token_ids": [7], "choices": [{"token_ids": [8, 9]}]}
    if kind == "csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(
                [("request", "response"), ('{"max_tokens": 50}', json.dumps(told))]
            )
    else:
        duckdb.sql(f"SELECT {{'max_tokens': 50}} AS request, {told} AS response").write_parquet(
            str(path)
        )
    [(_, found)] = read(LogReader(), path)
    assert ids(found) == ([7], [8, 9])
    assert answer(found).max_tokens == 50


def test_text_without_a_tokenizer_says_what_it_needs(tmp_path: Path) -> None:
    [found] = read_rows(tmp_path, {"prompt": "ab", "completion": "cd"}, reader=LogReader())
    assert "needs --tokenizer" in reason(found)


def test_a_body_with_token_ids_needs_no_text(tmp_path: Path) -> None:
    chat = body(prompt_token_ids=[7, 8])
    chat["choices"][0]["token_ids"] = [9]
    completion = body()
    completion["choices"] = [{"text": "a", "token_ids": [5, 6], "prompt_token_ids": [1]}]
    found = read_rows(tmp_path, chat, completion, reader=LogReader())
    assert [ids(each) for each in found] == [([7, 8], [9]), ([1], [5, 6])]
    assert answer(found[0]).tags == {"model": "m"}


def test_a_request_and_its_response_are_encoded_together(tmp_path: Path) -> None:
    request = {"messages": [{"role": "user", "content": "ok?"}], "max_tokens": 50}
    [found] = read_rows(tmp_path, {"request": request, "response": body(), "kind": "chat"})
    assert said(found) == ("user:ok?\x01", "yes")
    assert answer(found).max_tokens == 50
    assert answer(found).tags == {"kind": "chat", "model": "m"}


def test_a_body_alone_has_no_prompt(tmp_path: Path) -> None:
    [found] = read_rows(tmp_path, body())
    assert "log the request beside it" in reason(found)


def test_the_choices_of_one_body_belong_together(tmp_path: Path) -> None:
    several = body(prompt_token_ids=[7, 8], usage={"prompt_tokens": 2, "completion_tokens": 3})
    several["choices"] = [{"token_ids": [9, 9]}, {"token_ids": [3]}]
    found = [answer(each) for each in read_rows(tmp_path, several)]
    assert [each.cluster for each in found] == ["c1", "c1"]


def test_a_stream_is_put_together(tmp_path: Path) -> None:
    def event(**told: Any) -> str:
        chunk = {"id": "s", "object": "chat.completion.chunk", **told}
        return f"data: {json.dumps(chunk)}\n\n"

    path = tmp_path / "one.sse"
    path.write_text(
        event(prompt_token_ids=[1, 2], choices=[{"index": 0, "delta": {"role": "assistant"}}])
        + event(choices=[{"index": 0, "delta": {"content": "a"}, "token_ids": [5]}])
        + event(choices=[{"index": 0, "delta": {"content": "b"}, "token_ids": [6, 7]}])
        + "data: [DONE]\n\n"
    )
    [(_, found)] = read(LogReader(), path)
    assert ids(found) == ([1, 2], [5, 6, 7])


def test_each_turn_of_a_conversation_answers_all_before_it(tmp_path: Path) -> None:
    turns = [("human", "a"), ("gpt", "b"), ("human", "c"), ("gpt", "d")]
    messages = [{"from": who, "value": text} for who, text in turns]
    first, second = read_rows(tmp_path, {"id": "t", "conversations": messages})
    assert said(first) == ("user:a\x01", "b")
    assert said(second) == ("user:a|assistant:b|user:c\x01", "d")
    assert answer(first).cluster == answer(second).cluster == "t"


def test_csv_rows_hold_lists_and_texts_that_span_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "prompt_token_ids,completion_token_ids,prompt,completion,kind\n"
        '"[1, 2]","[3, 4]",,,ids\n'
        ',,"two\nlines","yes, ""so""",text\n'
        ",,2 + 2?,4,text\n"
    )
    (first, one), (second, two), (_, three) = read(LogReader(encoder=Letters()), path)
    assert ids(one) == ([1, 2], [3, 4])
    assert said(two) == ("two\nlines", 'yes, "so"')
    assert said(three) == ("2 + 2?", "4")
    assert (first.line, second.line) == (2, 4)
    assert answer(two).tags == {"kind": "text"}


def test_parquet_rows_are_read_in_their_order(tmp_path: Path) -> None:
    import duckdb  # noqa: PLC0415

    path = tmp_path / "log.parquet"
    duckdb.sql(
        "SELECT [i, i + 1] AS prompt_token_ids, [i, 7] AS completion_token_ids, 'k' AS kind"
        " FROM range(200) AS t(i) ORDER BY i"
    ).write_parquet(str(path))
    found = read(LogReader(), path)
    assert [ids(each)[1] for _, each in found] == [[i, 7] for i in range(200)]
    assert found[199][0].line == 200
    assert answer(found[0][1]).tags == {"kind": "k"}


def test_a_forced_format_reads_everything(tmp_path: Path) -> None:
    row = {**ROW, "prompt": "ab", "completion": "cd"}
    [found] = read_rows(
        tmp_path, row, reader=LogReader(encoder=Letters(), forced=log_format("text"))
    )
    assert said(found) == ("ab", "cd")


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(InvalidSetting, match="one of token-ids, body, text, conversation"):
        log_format("csv")
    assert [log_format(each.name) for each in FORMATS] == list(FORMATS)
