"""A byte stream that ends where reading it fails."""

import io
import sys
import zlib
from collections.abc import Callable

import httpx2

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError

_FAILURES = (OSError, EOFError, zlib.error, ZstdError, httpx2.HTTPError, httpx2.StreamError)


class Guarded(io.RawIOBase):
    """Reads through `read(size)`; where that raises, the stream ends and `failures` has the reason.

    What was read until then is good, and whoever reads needs not care.
    """

    def __init__(self, read: Callable[[int], bytes], failures: list[str]) -> None:
        super().__init__()
        self._read = read
        self._failures = failures
        self._done = False

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    # A full buffer as long as there is anything: what the first bytes tell is told at once.
    def readinto(self, buffer: "memoryview", /) -> int:  # type: ignore[override]
        """Fill the buffer unless the stream ends."""
        filled = 0
        while filled < len(buffer) and not self._done:
            try:
                data = self._read(len(buffer) - filled)
            except _FAILURES as error:
                self._failures.append(str(error) or type(error).__name__)
                data = b""
            buffer[filled : filled + len(data)] = data
            filled += len(data)
            self._done = not data
        return filled
