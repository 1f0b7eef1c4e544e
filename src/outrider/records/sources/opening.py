"""From what the user names to open byte streams, whichever way they are stored."""

import gzip
import io
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

import httpx2

from outrider.errors import UnreadableSource
from outrider.records.reading import BadRecord, NoMetrics, Place
from outrider.records.sources.addresses import is_url, page_address, without_password
from outrider.records.sources.folder import files_in
from outrider.records.sources.guarded import Guarded

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdFile
else:
    from backports.zstd import ZstdFile

HEAD = 64 << 10
"""Bytes that tell what a source is."""
TIMEOUT_S = 10.0
STDIN = "-"
MOST_SHOWN = 60
"""Characters of numbers typed by hand that name their place."""

_GZIP = b"\x1f\x8b\x08"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"
_HOST = re.compile(r"[\w.-]+:\d+(/|$)")
_MOST_LAYERS = 2
_EXPECTED = (
    "a file, a folder, an http(s) URL, - for standard input, or numbers such as [39, 1, 0, 3]"
)


@dataclass(frozen=True, slots=True)
class OpenSource:
    """A stream of uncompressed bytes from its start.

    `path` is the file that holds just these bytes, if one does. `failures` has the reasons for
    which the stream ended early, once it has been read.
    """

    name: str
    stream: "io.BufferedReader[Guarded]"
    path: Path | None
    failures: list[str]

    @property
    def head(self) -> bytes:
        """The first bytes, up to 64 KiB, as long as nothing was read."""
        return self.stream.peek(HEAD)


Opened: TypeAlias = OpenSource | tuple[Place, BadRecord | NoMetrics]

READ_BEFORE = "the same file was read before"


def check_source(name: str) -> None:
    """Raise UnreadableSource where a name is that of nothing."""
    if name == STDIN or is_url(name) or _is_inline(name) or _exists(name):
        return
    remedy = f"write http://{name}" if _HOST.match(name) else "check the name"
    raise UnreadableSource(f"{_shown(name) or repr(name)} does not exist", _EXPECTED, remedy)


class Visited:
    """The files that were opened, so that one which is named twice is read once."""

    def __init__(self) -> None:
        self._files: set[tuple[int, int]] = set()

    def is_new(self, file: Path | io.FileIO) -> bool:
        """Whether a file is met for the first time; pipes and devices always are."""
        status = file.stat() if isinstance(file, Path) else os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return True
        identity = (status.st_dev, status.st_ino)
        if identity in self._files:
            return False
        self._files.add(identity)
        return True


def open_sources(
    name: str, *, stdin: BinaryIO, http: httpx2.Client, visited: Visited | None = None
) -> Iterator[Opened]:
    """Open everything that a name stands for, one after another; each is closed after its turn.

    A file that was `visited` before is told of, and not opened again.

    Raises UnreadableSource where the name itself cannot be opened. What cannot be opened within a
    folder is a BadRecord.
    """
    check_source(name)
    if name == STDIN:
        yield _opened(name, stdin.read)
    elif is_url(name):
        yield from _open_url(name, http)
    elif _is_inline(name):
        yield _opened(_shown(name), io.BytesIO(name.encode("utf-8", "replace")).read)
    elif Path(name).is_dir():
        yield from _open_folder(Path(name), visited or Visited())
    else:
        yield from _open_file(Path(name), visited or Visited())


def _open_url(url: str, http: httpx2.Client) -> Iterator[Opened]:
    address = page_address(url)
    shown = without_password(address)
    try:
        with http.stream("GET", address, timeout=TIMEOUT_S, follow_redirects=True) as response:
            if response.status_code != httpx2.codes.OK:
                raise UnreadableSource(
                    f"{shown} answers with status {response.status_code}",
                    "status 200",
                    "check the address and what it asks for",
                )
            yield _opened(shown, _Chunks(response.iter_bytes()).read)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise UnreadableSource(
            f"{shown} cannot be fetched ({str(error) or type(error).__name__})",
            f"an answer within {TIMEOUT_S:g} s",
            "check the address and that the server runs",
        ) from error


def _open_folder(folder: Path, visited: Visited) -> Iterator[Opened]:
    files = files_in(folder)
    empty = True
    while True:
        try:
            path, error = next(files)
        except StopIteration:
            break
        except OSError as failure:
            raise _cannot_open(_shown(str(folder)), failure) from failure
        empty = False
        try:
            if error is not None:
                raise error
            file = path.open("rb", buffering=0)
        except OSError as failure:
            yield Place(_shown(str(path))), BadRecord(f"cannot be opened ({_cause(failure)})")
            continue
        with file:
            if visited.is_new(file):
                yield _opened(_shown(str(path)), file.read, path)
            else:
                yield Place(_shown(str(path))), NoMetrics(READ_BEFORE)
    if empty:
        yield Place(_shown(str(folder))), BadRecord("the folder holds no file")


def _open_file(path: Path, visited: Visited) -> Iterator[Opened]:
    try:
        file = path.open("rb", buffering=0)
    except OSError as error:
        raise _cannot_open(_shown(str(path)), error) from error
    with file:
        if visited.is_new(file):
            yield _opened(_shown(str(path)), file.read, path if path.is_file() else None)
        else:
            yield Place(_shown(str(path))), NoMetrics(READ_BEFORE)


def _opened(name: str, read: Callable[[int], bytes], path: Path | None = None) -> OpenSource:
    failures: list[str] = []
    stream = io.BufferedReader(Guarded(read, failures), HEAD)
    for _ in range(_MOST_LAYERS):
        magic = stream.peek(4)
        if magic.startswith(_GZIP):
            read = gzip.GzipFile(fileobj=stream).read1
        elif magic.startswith(_ZSTD) or magic[1:4] == _ZSTD_SKIPPABLE:
            read = ZstdFile(stream).read
        else:
            break
        path = None
        stream = io.BufferedReader(Guarded(read, failures), HEAD)
    return OpenSource(name, stream, path, failures)


class _Chunks:
    """The bytes of an answer, by as many as are asked for."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int) -> bytes:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._rest = chunk
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


def _cannot_open(shown: str, error: OSError) -> UnreadableSource:
    return UnreadableSource(
        f"{shown} cannot be opened ({_cause(error)})", _EXPECTED, "check its permissions"
    )


def _cause(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _is_inline(name: str) -> bool:
    return name.lstrip().startswith(("[", "{")) and not _exists(name)


def _exists(name: str) -> bool:
    try:
        return bool(name) and Path(name).exists()
    except OSError:
        # Text that was typed may be too long for a name.
        return False


def _shown(name: str) -> str:
    """Return the name for people: one short line of real characters, without a password."""
    if is_url(name):
        return without_password(name)
    if _is_inline(name):
        text = " ".join(name.split())
        return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."
    return name.encode("utf-8", "replace").decode()
