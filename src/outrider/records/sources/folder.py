"""The files of a folder and of those below it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path


def files_in(folder: Path) -> Iterator[tuple[Path, OSError | None]]:
    """Walk a folder in the order of names, with the error where something cannot be looked at.

    Hidden files and what is neither a file nor a folder are left out; a link is followed unless it
    leads back up. Only the names within one folder are held at a time. Raises OSError where the
    folder itself cannot be listed.
    """
    yield from _walk(folder, frozenset())


def _walk(folder: Path, above: frozenset[tuple[int, int]]) -> Iterator[tuple[Path, OSError | None]]:
    status = folder.stat()
    here = above | {(status.st_dev, status.st_ino)}
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
    for name in names:
        path = folder / name
        try:
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                yield path, None
            elif stat.S_ISDIR(status.st_mode) and (status.st_dev, status.st_ino) not in here:
                yield from _walk(path, here)
        except OSError as error:
            yield path, error
