"""A file that lines are added to as they come, for as long as it takes."""

import os
from contextlib import suppress
from pathlib import Path

from outrider.errors import UnwritableOutput

MOST_KEPT = 10_000


class AppendedFile:
    """Adds lines to a file, each handed to the system at once: a kill loses none.

    Where the disk refuses, up to `MOST_KEPT` lines wait in memory, and go first once it no longer
    does.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or make it; UnwritableOutput where that cannot be."""
        self.path = path
        self._waiting: list[bytes] = []
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        except OSError as error:
            raise UnwritableOutput(
                f"{str(path)!r} cannot be written ({error.strerror})",
                "a file in a writable folder",
                "choose another path",
            ) from error

    @property
    def waiting(self) -> int:
        """How many lines are not written yet."""
        return len(self._waiting)

    def append(self, lines: list[str]) -> str | None:
        """Add lines without their ends; return why they wait, None if all are written."""
        self._waiting.extend(f"{line}\n".encode("utf-8", "replace") for line in lines)
        del self._waiting[:-MOST_KEPT]
        content = b"".join(self._waiting)
        written, cause = 0, None
        try:
            while written < len(content):
                written += os.write(self._file, content[written:])
        except OSError as error:
            cause = error.strerror or type(error).__name__
            with suppress(OSError):  # a device has no size
                os.ftruncate(self._file, os.fstat(self._file).st_size - written)
        else:
            self._waiting.clear()
        return cause
