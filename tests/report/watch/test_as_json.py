import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report.watch.windows import BROKEN, GOOD, record, series, window

from outrider.acceptance.alarm_band import FixedBand, Limits
from outrider.records.appending import AppendedFile
from outrider.records.windows import Window
from outrider.report.watch.running import JsonLines, KeptLines, run_watch
from outrider.report.watch.watcher import Watcher


def watcher() -> Watcher:
    band = FixedBand(Limits(1.3, None))
    return Watcher(lambda _: band, by=(), learn=20, min_steps=50, confirm=2)


def objects(windows: list[Window], *, fail_fast: bool = False) -> list[dict[str, Any]]:
    lines: list[str] = []
    run_watch(windows, watcher(), [JsonLines(lines.extend)], fail_fast=fail_fast)
    return [json.loads(line) for line in lines]


def test_every_object_names_its_schema_and_type() -> None:
    found = objects(series(GOOD, BROKEN, BROKEN))
    assert {each["schema"] for each in found} == {"outrider.watch/1"}
    assert [each["type"] for each in found] == ["window", "window", "window", "alarm", "summary"]


def test_a_window_has_its_sums_and_what_it_was_held_against() -> None:
    first = objects([window(0, record(GOOD, {"model": "m"}))])[0]
    assert first["segment"]["model"] == "m"
    assert (first["steps"], first["accepted"], first["drafted"]) == (100, 110, 300)
    assert first["histogram"] == list(GOOD)
    assert first["mean_acceptance_length"] == pytest.approx(2.1)
    assert (first["low"], first["high"], first["state"]) == (1.3, None, "inside")
    assert first["start"] == "2026-12-01T04:40:00.000+00:00"


def test_what_is_unknown_is_null_and_never_zero() -> None:
    _, idle, _ = objects(series(GOOD, ()))
    assert (idle["mean_acceptance_length"], idle["histogram"], idle["low"]) == (None, None, None)
    [nothing, summary] = objects([window(0)])
    assert (nothing["segment"], nothing["steps"], nothing["reason"]) == (None, None, "nothing came")
    assert summary["segments"] == []


def test_windows_that_were_not_judged_are_counted_by_why_not() -> None:
    *_, summary = objects(series(GOOD, (), (3, 1, 0, 0), GOOD, (3, 1, 0, 0)))
    [segment] = summary["segments"]
    assert (segment["windows"], segment["judged"]) == (4, 2)
    assert segment["unjudged"] == {"too_few_steps": 2}


def test_an_alarm_says_when_which_side_and_what_to_check() -> None:
    [alarm] = [each for each in objects(series(BROKEN, BROKEN)) if each["type"] == "alarm"]
    assert (alarm["event"], alarm["side"], alarm["windows"]) == ("raised", "low", 2)
    assert alarm["at"] == "2026-12-01T04:40:20.000+00:00"
    assert "garbled" in alarm["check"]


def test_a_watch_that_fails_fast_ends_with_its_first_alarm() -> None:
    found = objects(series(BROKEN, BROKEN, GOOD, GOOD), fail_fast=True)
    assert [each["type"] for each in found] == ["window", "window", "alarm", "summary"]
    assert found[-1]["alarmed"]


def test_ctrl_c_still_tells_the_summary() -> None:
    def interrupted() -> Iterator[Window]:
        yield from series(GOOD)
        raise KeyboardInterrupt

    lines: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run_watch(interrupted(), watcher(), [JsonLines(lines.extend)])
    assert json.loads(lines[-1])["windows"] == 1


def test_a_full_disk_is_told_once_and_stops_nothing() -> None:
    said: list[str] = []
    summary = run_watch(
        series(GOOD, GOOD, GOOD),
        watcher(),
        [KeptLines(AppendedFile(Path("/dev/full")), said.append)],
    )
    assert summary.windows == 3
    refused, lacking = said
    assert "No space left on device" in refused
    assert "lacks the last 4 lines" in lacking


def test_a_disk_that_has_room_again_is_told_and_lacks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "watch.jsonl"
    said: list[str] = []

    def full(number: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def windows() -> Iterator[Window]:
        first, second, third = series(GOOD, GOOD, GOOD)
        monkeypatch.setattr("outrider.records.appending.os.write", full)
        yield first
        yield second
        monkeypatch.undo()
        yield third

    run_watch(windows(), watcher(), [KeptLines(AppendedFile(path), said.append)])
    assert [text.split(" ", 1)[1].partition(" (")[0] for text in said] == [
        "cannot be written",
        "is written again, with the lines that waited",
    ]
    assert len(path.read_text().splitlines()) == 4


def test_a_file_has_every_window_before_the_next_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "watch.jsonl"
    written = []

    def windows() -> Iterator[Window]:
        for each in series(GOOD, BROKEN):
            yield each
            written.append(len(path.read_text().splitlines()))

    run_watch(windows(), watcher(), [KeptLines(AppendedFile(path), print)])
    assert written == [1, 2]
    assert len(path.read_text().splitlines()) == 3
