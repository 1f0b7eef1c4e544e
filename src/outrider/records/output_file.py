"""What can go wrong with a DuckDB file while it is being written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from outrider.errors import UnwritableOutput
from outrider.records.evidence_schema import first_line
from outrider.records.interrupt import interrupt_held


def check_vacant(path: Path) -> None:
    """Raise UnwritableOutput unless `path` is free and its folder is there to be written."""
    if path.is_dir():
        raise UnwritableOutput(f"{path} is a folder", "the name of a file", "add a file name to it")
    if path.exists():
        raise UnwritableOutput(
            f"{path} exists already", "a new file", "go on with --resume or choose another name"
        )
    if not path.parent.is_dir():
        raise UnwritableOutput(
            f"there is no folder {path.parent}", "a folder to write to", "create it"
        )
    if not os.access(path.parent, os.W_OK):
        raise UnwritableOutput(
            f"the folder {path.parent} is read-only", "a folder to write to", "choose another path"
        )


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Finish the block in spite of Ctrl-C; UnwritableOutput where the disk refuses."""
    try:
        # In the middle of a statement duckdb makes errors of several other types of an interrupt,
        # and whether the statement was carried out is then anyone's guess.
        with interrupt_held():
            yield
    except _DISK_FAILURES as error:
        raise UnwritableOutput(
            f"{path} cannot be written ({first_line(error)})",
            "a writable folder with room on its disk",
            "free some space, or choose another path",
        ) from error


# A commit that finds no room fails as a transaction, a checkpoint fatally.
_DISK_FAILURES = (duckdb.IOException, duckdb.TransactionException, duckdb.FatalException)
