"""From the names of logs to the files that can be replayed apart from each other."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from outrider.errors import InvalidSetting, UnreadableSource
from outrider.records.reading import BadRecord, NoMetrics, Place
from outrider.records.sources.addresses import is_url, without_password
from outrider.records.sources.folder import files_in
from outrider.records.sources.opening import READ_BEFORE, STDIN, Visited, check_source


class LogFile(NamedTuple):
    """A file or URL: as it is shown, and by the name that holds in any working directory."""

    shown: str
    name: str


Found: TypeAlias = LogFile | tuple[Place, BadRecord | NoMetrics]


def log_files(sources: Iterable[str]) -> Iterator[Found]:
    """Yield every file of the sources in their order, and what is none with the reason.

    Raises UnreadableSource where a name is that of nothing, InvalidSetting for standard input.
    """
    names, visited = [*sources], Visited()
    for name in names:
        if name == STDIN:
            raise InvalidSetting(
                "standard input",
                "files, which can be spread",
                "save it to files, or replay it here",
            )
        check_source(name)
    for name in names:
        path = Path(name)
        if is_url(name):
            yield LogFile(without_password(name), name)
        elif path.is_dir():
            yield from _in_folder(path, visited)
        else:
            yield _once(path, visited)


def _in_folder(folder: Path, visited: Visited) -> Iterator[Found]:
    empty = True
    try:
        for path, error in files_in(folder):
            empty = False
            if error is None:
                yield _once(path, visited)
            else:
                yield Place(_shown(path)), BadRecord(f"cannot be opened ({_cause(error)})")
    except OSError as error:
        raise UnreadableSource(
            f"{_shown(folder)} cannot be opened ({_cause(error)})",
            "a folder of logs",
            "check its permissions",
        ) from error
    if empty:
        yield Place(_shown(folder)), BadRecord("the folder holds no file")


def _once(path: Path, visited: Visited) -> Found:
    if visited.is_new(path):
        return LogFile(_shown(path), str(path.absolute()))
    return Place(_shown(path)), NoMetrics(READ_BEFORE)


def _shown(path: Path) -> str:
    return str(path).encode("utf-8", "replace").decode()


def _cause(error: OSError) -> str:
    return error.strerror or type(error).__name__
