"""Documents are found by what the bytes are, and nothing in them raises."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.reading import BadRecord, Place
from outrider.records.sources import values
from outrider.records.sources.document import FileDocument, JsonDocument, TextDocument
from outrider.records.sources.framing import framed
from outrider.records.sources.opening import OpenSource, open_sources
from outrider.records.sources.sse import Framed

FrameBytes = Callable[[bytes], list[Framed]]

LOG = b"[2026-01-01 10:00:00] INFO started\n{not json}\n" + b"INFO SpecDecoding metrics: 1\n" * 3


def json_values(found: list[Framed]) -> list[object]:
    assert all(isinstance(one, JsonDocument) for one in found), found
    return [one.value for one in found if isinstance(one, JsonDocument)]


def lines_of(found: list[Framed]) -> list[int | None]:
    return [one[0].line if isinstance(one, tuple) else one.place.line for one in found]


def reasons(found: list[Framed]) -> list[str]:
    return [one[1].reason for one in found if isinstance(one, tuple)]


def test_json_lines_keep_their_numbers(frame: FrameBytes) -> None:
    found = frame(b'\xef\xbb\xbf{"a": 1}\r\n\r\n  \n{"a": 2}\n{"a": 3}')
    assert json_values(found) == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert lines_of(found) == [1, 4, 5]


@pytest.mark.parametrize("last", [b'{"a": 3, "b', b'{"a": 3}\0\0\0\0', b"\0" * 500, b"\0"])
def test_a_spoilt_last_line_is_one_bad_record(frame: FrameBytes, last: bytes) -> None:
    found = frame(b'{"a": 1}\n{"a": 2}\n' + last)
    assert json_values(found[:2]) == [{"a": 1}, {"a": 2}]
    assert len(found) == 3
    assert isinstance(found[2], tuple)
    assert found[2][0] == Place("-", 3)


@pytest.mark.parametrize(
    "line",
    [
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": "\\ud800"}',
        b'{"a": "\xe4"}',
        b"[" * 100_000,
        b"null",
    ],
)
def test_one_bad_line_leaves_the_others(frame: FrameBytes, line: bytes) -> None:
    found = frame(b'{"a": 1}\n' + line + b'\n{"a": 2}\n')
    assert json_values([found[0], found[2]]) == [{"a": 1}, {"a": 2}]
    assert lines_of(found) == [1, 2, 3]
    assert len(reasons(found)) == 1


def test_a_line_that_is_too_long_is_bad_and_counted_once(
    frame: FrameBytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outrider.records.sources.framing.LONGEST_LINE", 100)
    found = frame(b'{"a": 1}\n{"a": "' + b"x" * 1000 + b'"}\n{"a": 2}\n')
    assert lines_of(found) == [1, 2, 3]
    assert reasons(found) == [values.TOO_LONG]


@given(st.lists(st.dictionaries(st.text(), st.integers() | st.text()) | st.just("broken {")))
def test_json_lines_equal_those_of_a_plain_loop(
    frame: FrameBytes, rows: list[dict[str, object] | str]
) -> None:
    body = ["{}", *(row if isinstance(row, str) else json.dumps(row) for row in rows)]
    found = frame("\n".join(body).encode())
    assert lines_of(found) == [*range(1, len(body) + 1)]
    for line, one in zip(body, found, strict=True):
        try:
            expected = json.loads(line)
        except ValueError:
            assert isinstance(one, tuple)
        else:
            # Beyond 64 bits the decoder may decline.
            assert isinstance(one, tuple) or (
                isinstance(one, JsonDocument) and one.value == expected
            )


@given(
    st.binary()
    | st.lists(
        st.sampled_from(
            [
                b"{",
                b"}",
                b"[",
                b"]",
                b"\n",
                b"data: ",
                b'{"a":1}',
                b"[DONE]",
                b'"',
                b"\0",
                b": ",
                b",",
            ]
        )
    ).map(b"".join)
)
def test_no_bytes_raise(frame: FrameBytes, data: bytes) -> None:
    for compressed in (data, gzip.compress(data)[: len(data) + 5]):
        found = frame(compressed)
        assert found
        for one in found:
            if isinstance(one, TextDocument):
                assert all(isinstance(line, str) for _, line in one.lines())


@pytest.mark.parametrize("value", [{"a": {"b": [1, 2]}}, [39, 1, 0, 3], {"choices": [{"x": {}}]}])
def test_a_value_over_many_lines_is_one_document(frame: FrameBytes, value: object) -> None:
    for indent in (None, 2):
        assert json_values(frame(json.dumps(value, indent=indent).encode() + b"\n")) == [value]


def test_a_large_value_over_many_lines_is_one_document(frame: FrameBytes) -> None:
    value = {"rows": [{"number": number} for number in range(20_000)]}
    assert json_values(frame(json.dumps(value, indent=1).encode())) == [value]


def test_each_object_of_a_list_is_a_document_with_its_line(frame: FrameBytes) -> None:
    rows = [{"a": 1}, {"a": 2}, {"a": 3}]
    assert json_values(frame(json.dumps(rows).encode())) == rows
    spread = frame(json.dumps(rows, indent=2).encode())
    assert json_values(spread) == rows
    assert lines_of(spread) == [2, 5, 8]


def test_a_list_that_is_cut_off_gives_what_came_before(frame: FrameBytes) -> None:
    rows = [{"a": {"b": "x" * 50}} for _ in range(5)]
    for indent in (None, 2):
        text = json.dumps(rows, indent=indent).encode()
        found = frame(text[:-20])
        assert json_values(found[:4]) == rows[:4]
        assert reasons(found) == ["the JSON is cut off"]


def test_answers_that_follow_without_a_line_break_are_documents(frame: FrameBytes) -> None:
    assert json_values(frame(b'{"a": 1}{"a": 2}{"a": {"b": 3}}')) == [
        {"a": 1},
        {"a": 2},
        {"a": {"b": 3}},
    ]
    found = frame(b'{\n  "a": 1\n}\n{\n  "a": 2\n}\n')
    assert json_values(found) == [{"a": 1}, {"a": 2}]
    assert lines_of(found) == [1, 4]


def test_a_log_is_text_even_where_its_lines_look_like_json(frame: FrameBytes) -> None:
    for text in (LOG, b"{worker 1} ready\n" + LOG, b"[1] started\n[1] INFO {\n" + LOG):
        (found,) = frame(text)
        assert isinstance(found, TextDocument)
        assert found.head == text.decode()
        assert [*found.lines()] == [*enumerate(text.decode().splitlines(), 1)]


def test_text_in_latin_1_is_read_with_marks(frame: FrameBytes) -> None:
    (found,) = frame("# Messgrößen der Woche\r\nvllm:steps 3\r\n".encode("latin-1"))
    assert isinstance(found, TextDocument)
    assert [*found.lines()][1] == (2, "vllm:steps 3")


def test_a_file_that_was_cut_out_of_json_lines_loses_only_its_first(frame: FrameBytes) -> None:
    found = frame(b'choices": []}\n{"a": 1}\n{"a": 2}\n{"a": 3')
    assert lines_of(found) == [1, 2, 3, 4]
    assert len(reasons(found)) == 2


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"\n \r\n", "nothing but blank lines"),
        (b"\0" * 4096, "nothing but NUL bytes"),
        ('{"a": 1}'.encode("utf-16"), "UTF-16"),
        ('{"a": 1}'.encode("utf-16-le"), "UTF-16"),
        (b"\x7fELF\x02\x01\x01\0" + bytes(range(256)) * 8, "binary data"),
        (("価格は変わりません。" * 20).encode("shift-jis"), "another encoding"),
    ],
)
def test_what_is_no_text_is_one_bad_record(frame: FrameBytes, data: bytes, reason: str) -> None:
    (told,) = reasons(frame(data))
    assert reason in told


def test_a_database_is_left_to_its_adapter(tmp_path: Path, http: httpx2.Client) -> None:
    path = tmp_path / "evidence"
    path.write_bytes(bytes(8) + b"DUCK" + bytes(4096))
    (found,) = [
        one
        for source in open_sources(str(path), stdin=io.BytesIO(), http=http)
        if isinstance(source, OpenSource)
        for one in framed(source)
    ]
    assert found == FileDocument(Place(str(path)), path, path.read_bytes()[:64])


def test_a_database_in_a_stream_is_refused(frame: FrameBytes) -> None:
    for data in (bytes(8) + b"DUCK" + bytes(99), gzip.compress(bytes(8) + b"DUCK" + bytes(99))):
        assert frame(data) == [
            (
                Place("-"),
                BadRecord("a DuckDB file, which is read only from disk, uncompressed"),
            )
        ]
