"""Runs a watch from its first window to its summary."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from outrider.records.appending import AppendedFile
from outrider.records.windows import Window
from outrider.report.cells import counted
from outrider.report.watch.as_json import summary_line, window_lines
from outrider.report.watch.document import WatchSummary, WindowReport
from outrider.report.watch.watcher import Watcher


class Listener(Protocol):
    """Whoever is told of each window as soon as it was judged, and of the end."""

    def write(self, report: WindowReport) -> None:
        """Take one window."""

    def end(self, summary: WatchSummary) -> None:
        """Take the summary."""


class JsonLines:
    """Tells a watch as JSON lines, each handed to `write` whole."""

    def __init__(self, write: Callable[[list[str]], None]) -> None:
        self._write = write

    def write(self, report: WindowReport) -> None:
        """Write the lines of one window."""
        self._write(window_lines(report))

    def end(self, summary: WatchSummary) -> None:
        """Write the last line."""
        self._write([summary_line(summary)])


class KeptLines(JsonLines):
    """Keeps a watch in a file, and says when the disk refuses, takes it again, or never does."""

    def __init__(self, file: AppendedFile, say: Callable[[str], None]) -> None:
        super().__init__(self._append)
        self._file, self._say = file, say

    def end(self, summary: WatchSummary) -> None:
        """Write the last line, and say what the file lacks."""
        super().end(summary)
        if self._file.waiting:
            lacking = counted(self._file.waiting, "line")
            self._say(f"{self._file.path} lacks the last {lacking}, which could not be written")

    def _append(self, lines: list[str]) -> None:
        path, waited = self._file.path, self._file.waiting
        cause = self._file.append(lines)
        if cause is not None and not waited:
            self._say(f"{path} cannot be written ({cause}); the watch goes on, its lines wait")
        if cause is None and waited:
            self._say(f"{path} is written again, with the lines that waited")


def run_watch(
    windows: Iterable[Window],
    watcher: Watcher,
    listeners: Sequence[Listener],
    *,
    fail_fast: bool = False,
) -> WatchSummary:
    """Judge and tell every window, up to the first alarm with `fail_fast`; then tell the summary.

    Ctrl-C ends it as well: KeyboardInterrupt is raised again after the summary.
    """
    interrupt = None
    try:
        for window in windows:
            report = watcher.see(window)
            for listener in listeners:
                listener.write(report)
            if fail_fast and any(event.kind == "raised" for event in report.events):
                break
    except KeyboardInterrupt as error:
        interrupt = error
    summary = watcher.summary()
    for listener in listeners:
        listener.end(summary)
    if interrupt is not None:
        raise interrupt
    return summary
