from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.sources.line_ranges import line_ranges, lines_of


def write(path: Path, lines: list[bytes]) -> Path:
    path.write_bytes(b"".join(lines))
    return path


@given(
    lengths=st.lists(st.integers(0, 300), min_size=2, max_size=60), range_bytes=st.integers(1, 900)
)
def test_the_ranges_hold_every_line_once_and_in_order(
    lengths: list[int], range_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [b'{"a": "' + b"x" * length + b'"}\n' for length in lengths]
    path = write(tmp_path_factory.mktemp("ranges") / "a.jsonl", lines)
    ranges = line_ranges(path, range_bytes)
    found = [line for one in ranges for _, line in lines_of(one)]
    assert found == (lines if path.stat().st_size > range_bytes else [])
    for one in ranges:
        assert [number for number, _ in lines_of(one)] == [
            *range(1, 1 + sum(1 for _ in lines_of(one)))
        ]


def test_the_last_line_needs_no_line_break(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [b"{}\n", b"{}\n", b'{"last": 1}'])
    ranges = line_ranges(path, 4)
    assert [line for one in ranges for _, line in lines_of(one)][-1] == b'{"last": 1}'


@pytest.mark.parametrize(
    "lines",
    [
        [b"plain text\n"] * 9,
        [b"data: {}\n"] * 9,
        [b'{"object": "chat.completion.chunk", "choices": []}\n'] * 9,
        [b"[1, 2]\n"] * 9,
        [b'{"a":\n', b"1}\n"] * 9,
        [b"\x1f\x8b\x08" + b"{}\n" * 9],
    ],
)
def test_what_is_not_made_of_separate_json_lines_is_not_cut(
    lines: list[bytes], tmp_path: Path
) -> None:
    assert line_ranges(write(tmp_path / "a.jsonl", lines), 8) == []


def test_what_is_no_file_has_no_ranges(tmp_path: Path) -> None:
    assert line_ranges(tmp_path, 1) == []
    assert line_ranges(tmp_path / "missing", 1) == []
