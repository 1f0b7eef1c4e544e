"""What is wrong with a log is told in its place, and stops nothing."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.replay.logs.reading import Letters, answer, read, read_rows, reason

from outrider.errors import UnreadableSource
from outrider.records.reading import BadRecord, NoMetrics, Place
from outrider.replay.logs import fields
from outrider.replay.logs.base import LogFormat
from outrider.replay.logs.reading import LogReader
from outrider.replay.logs.registry import FORMATS


def row(prompt: object = (1, 2, 3, 4), completion: object = (5, 6), **more: Any) -> dict[str, Any]:
    return {"prompt_token_ids": prompt, "completion_token_ids": completion, **more}


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (row(completion=[]), "the completion is empty"),
        (row(completion=[5, -1]), "holds the id -1; expected 0 to 2^31 - 1"),
        (row(prompt=[1 << 31]), "holds the id 2147483648"),
        (row(prompt=[1 << 70]), "no list of whole numbers"),
        (row(completion=[1.5]), "no list of whole numbers"),
        (row(completion=[True]), "no list of whole numbers"),
        (row(completion=[1, True, 3]), "no list of whole numbers"),
        (row(completion=["a"]), "no list of whole numbers"),
        (row(completion=[[1], [2, 3]]), "no list of whole numbers"),
        (row(prompt="text"), "the prompt is str; expected a list of token ids"),
        (row(prompt=None), "the prompt is missing"),
        (row(completion=[1, 2, 3, 4, 5]), "begins with its whole prompt"),
        ({"text": "a"}, "no answer in an object with 'text'"),
        ({}, "no answer in an object with nothing"),
        ([1, 2], "a list; expected an object"),
        (3, "a number; expected an object"),
    ],
)
def test_what_cannot_be_used_is_a_bad_record_among_good_ones(
    bad: object, why: str, tmp_path: Path
) -> None:
    found = read_rows(tmp_path, row(), bad, row(), reader=LogReader())
    assert len(found) == 3
    assert why in reason(found[1])
    assert answer(found[0]).completion.tolist() == answer(found[2]).completion.tolist() == [5, 6]


def test_a_prompt_of_few_tokens_may_begin_the_completion(tmp_path: Path) -> None:
    found = read_rows(tmp_path, row([7, 8], [7, 8, 9]), row([0] * 5, [0] * 6), reader=LogReader())
    assert [len(answer(each).completion) for each in found] == [3, 6]


def test_ids_beyond_the_vocabulary_are_named(tmp_path: Path) -> None:
    reader = LogReader(vocabulary_tokens=100)
    fits, beyond = read_rows(tmp_path, row(completion=[99]), row(prompt=[100]), reader=reader)
    assert answer(fits)
    assert reason(beyond) == "the id 100 is beyond a vocabulary of 100 tokens"


def test_ids_of_another_tokenizer_are_named(tmp_path: Path) -> None:
    first, other, again = read_rows(
        tmp_path, row(tokenizer="llama"), row(tokenizer="qwen"), row(tokenizer="llama")
    )
    assert answer(first)
    assert answer(again)
    assert "ids of the tokenizer qwen in a log that began with those of llama" in reason(other)


def test_ids_that_the_server_counted_otherwise_are_named(tmp_path: Path) -> None:
    body = {
        "choices": [{"token_ids": [1, 2]}],
        "prompt_token_ids": [5, 6, 7],
        "usage": {"prompt_tokens": 3, "completion_tokens": 9},
    }
    [found] = read_rows(tmp_path, body)
    assert reason(found).startswith("the answer has 2 token ids and usage.completion_tokens says 9")


def test_a_record_of_millions_of_tokens_is_refused_and_the_next_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fields, "MOST_TOKENS", 1000)
    long, both, good = read_rows(
        tmp_path, row(completion=[1] * 1001), row([1] * 600, [2] * 600), row(), reader=LogReader()
    )
    assert reason(long) == "the completion has 1,001 tokens; expected at most 1,000"
    assert reason(both) == "prompt and completion have 1,200 tokens; at most 1,000 fit"
    assert answer(good)


@pytest.mark.parametrize("limit", [0, -1, 1, True, "9", 9.0, None, 1 << 31, 1 << 63, 10**30])
def test_a_limit_that_no_answer_can_have_is_none(limit: object, tmp_path: Path) -> None:
    [found] = read_rows(tmp_path, row(max_tokens=limit))
    assert answer(found).max_tokens is None


@pytest.mark.parametrize("time", [10**400, "soon", True, [5]])
def test_a_time_that_is_none_costs_no_answer(time: object, tmp_path: Path) -> None:
    [found] = read_rows(tmp_path, row(timestamp=time))
    assert answer(found).timestamp_s is None


@pytest.mark.parametrize("format_", FORMATS)
def test_a_forced_format_reads_nothing_into_an_entry_of_another(
    format_: LogFormat, tmp_path: Path
) -> None:
    reader = LogReader(encoder=Letters(), forced=format_)
    other = {"prompt": "a"}
    [found] = read_rows(tmp_path, other, reader=reader)
    assert reason(found) == f"no {format_.name} answer in an object with 'prompt'"


def test_what_came_before_the_end_of_a_cut_off_archive_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl.gz"
    rows = "".join(f"{json.dumps(row(completion=[each, each]))}\n" for each in range(500))
    packed = gzip.compress(rows.encode())
    path.write_bytes(packed[: len(packed) // 2])
    *found, last, end = [each for _, each in read(LogReader(), path)]
    said = [answer(each).completion.tolist() for each in found]
    assert said == [[each, each] for each in range(len(said))]
    assert len(said) > 200
    assert reason(last) == "the JSON is cut off"
    assert "it breaks off" in reason(end)


def test_a_line_that_is_cut_off_is_one_bad_record(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f"{json.dumps(row())}\n{json.dumps(row())[:30]}\n{json.dumps(row())}\n")
    places = [(place, type(each)) for place, each in read(LogReader(), path)]
    assert places[1] == (Place(str(path), 2), BadRecord)
    assert len(places) == 3


def test_what_is_no_log_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("some notes\nof no format\n")
    [(_, found)] = read(LogReader(), path)
    assert reason(found) == "no log of answers; docs/replay.md lists what is read"


@pytest.mark.parametrize("content", [b"PAR1", b"PAR1 and not really PAR1"])
def test_a_broken_parquet_file_is_one_bad_record(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(content)
    [(_, found)] = read(LogReader(), path)
    assert reason(found).startswith("no readable Parquet file")


def test_a_csv_row_with_more_cells_than_columns_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('completion_token_ids,prompt_token_ids\n[1],[2],[3]\n"[1]","[2]"\n')
    (_, first), (_, second) = read(LogReader(), path)
    assert reason(first) == "more cells than columns"
    assert answer(second)


def test_a_name_of_nothing_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="does not exist"):
        read(LogReader(), tmp_path / "missing.jsonl")


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f"{json.dumps(row())}\n")
    first, second = read(LogReader(), path, path)
    assert answer(first[1])
    assert reason(second[1]) == "the same file was read before"


def test_an_error_in_place_of_an_answer_is_not_a_bad_record(tmp_path: Path) -> None:
    failed, coded = read_rows(
        tmp_path, {"error": {"message": "no", "code": 400}}, {"object": "error", "message": "no"}
    )
    assert isinstance(failed, NoMetrics)
    assert isinstance(coded, NoMetrics)
