"""SHA-256 of files, and holding files to the one they should have."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from outrider.errors import CorruptFile


def file_sha256(file: Path) -> str:
    """The SHA-256 of the file's bytes, in hexadecimal."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def check_sha256(file: Path, expected: str, remedy: str) -> str:
    """The file's SHA-256; raises CorruptFile with `remedy` unless it is `expected`."""
    seen = file_sha256(file)
    if seen != expected:
        raise CorruptFile(f"{file} has sha256 {seen}", expected, remedy)
    return seen


def listing(sha256_of: Mapping[str, str]) -> str:
    """What `sha256sum` prints of the named files, in the order of their names."""
    return "".join(f"{sha256_of[name]}  {name}\n" for name in sorted(sha256_of))


def combined_sha256(sha256_of: Mapping[str, str]) -> str:
    """One SHA-256 for several files: that of their `listing`."""
    return hashlib.sha256(listing(sha256_of).encode()).hexdigest()
