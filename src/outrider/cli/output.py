"""Standard output, and files that replace it."""

import io
import os
import sys
from pathlib import Path

from rich.console import Console

from outrider.records.whole_file import write_whole

UNBOUND_WIDTH = 100
"""Columns of what is not written to a terminal."""


class Output(Console):
    """Standard output; a reader that stops early, as `head` does, is no failure."""

    def __init__(self) -> None:
        # A file or a pipe has no width of its own, and 80 columns would fold half of the tables.
        # There is no standard output at all where it was closed.
        file = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
        super().__init__(file=file, width=None if file.isatty() else UNBOUND_WIDTH)

    def on_broken_pipe(self) -> None:
        """Lets go of what is still written; the exit code is that of the command."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


class FileOutput(Console):
    """Gathers what is written, for a file that is whole or not there."""

    def __init__(self, path: Path) -> None:
        super().__init__(file=io.StringIO(), width=UNBOUND_WIDTH)
        self._path = path

    def on_broken_pipe(self) -> None:
        """Has nothing to let go of."""

    def save(self) -> None:
        """Writes the file; UnwritableOutput where the disk refuses."""
        assert isinstance(self.file, io.StringIO)
        write_whole(self._path, self.file.getvalue().encode("utf-8", "replace"))
