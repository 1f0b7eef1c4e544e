import errno
import os
from pathlib import Path

import pytest

from outrider.errors import UnwritableOutput
from outrider.records import appending
from outrider.records.appending import AppendedFile


def test_lines_are_in_the_file_as_soon_as_they_are_added(tmp_path: Path) -> None:
    path = tmp_path / "watch.jsonl"
    path.write_text("from before\n")
    file = AppendedFile(path)
    assert file.append(["one", "two"]) is None
    assert path.read_text() == "from before\none\ntwo\n"


def test_lines_that_a_full_disk_refuses_wait_and_go_first_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "watch.jsonl"
    file = AppendedFile(path)
    file.append(["one"])
    real = os.write

    def half(number: int, content: bytes) -> int:
        if len(content) > 3:
            return real(number, content[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("outrider.records.appending.os.write", half)
    assert file.append(["second"]) == "No space left on device"
    assert (file.waiting, path.read_text()) == (1, "one\n")
    monkeypatch.undo()
    assert file.append(["third"]) is None
    assert path.read_text() == "one\nsecond\nthird\n"


def test_a_device_that_is_always_full_fails_nothing() -> None:
    file = AppendedFile(Path("/dev/full"))
    assert file.append(["one"]) == "No space left on device"
    assert file.append(["two"]) == "No space left on device"
    assert file.waiting == 2


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appending, "MOST_KEPT", 3)
    file = AppendedFile(Path("/dev/full"))
    for number in range(9):
        file.append([str(number)])
    assert file.waiting == 3


def test_a_file_that_cannot_be_opened_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(UnwritableOutput, match="cannot be written"):
        AppendedFile(tmp_path / "nowhere" / "watch.jsonl")
