"""A folder with safetensors, `config.json` and a tokenizer, and what makes it complete."""

from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from outrider.engine.models.checksum import check_sha256, combined_sha256, file_sha256
from outrider.errors import CorruptFile

MANIFEST_FILE = "outrider-manifest.json"
"""What a fetched folder holds beside the model: the files that belong to it."""


class FileRecord(BaseModel):
    """One file of a fetched folder."""

    name: str
    size_bytes: int
    sha256: str


class Manifest(BaseModel):
    """Where a fetched folder came from, and all of its files."""

    model_config = ConfigDict(extra="forbid")

    hub_id: str
    revision: str
    files: list[FileRecord]


def missing_parts(names: Iterable[str]) -> list[str]:
    """The patterns of a model's indispensable files that none of `names` matches."""
    present = list(names)
    parts = ("*.safetensors", "config.json", "tokenizer.*")
    return [part for part in parts if not any(fnmatch(name, part) for name in present)]


def given_folder_sha256(folder: Path) -> str:
    """The combined SHA-256 of a user's folder; raises CorruptFile where a part is missing."""
    names = [file.name for file in folder.iterdir()]
    if missing := missing_parts(names):
        raise CorruptFile(
            f"{folder} has no {' and no '.join(missing)}",
            "a folder with safetensors, config.json and a tokenizer",
            "give a complete folder or a .gguf file",
        )
    return combined_sha256(
        {name: file_sha256(folder / name) for name in names if _is_weights(name)}
    )


def fetched_folder_sha256(folder: Path) -> str:
    """The same of a fetched folder; raises CorruptFile where its manifest or a file disagrees."""
    remedy = f"delete {folder} and run again"
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST_FILE).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValidationError) as error:
        raise CorruptFile(
            f"{folder} has no valid {MANIFEST_FILE}", "a complete download", remedy
        ) from error
    for record in manifest.files:
        if not (folder / record.name).is_file():
            raise CorruptFile(f"{folder} has no {record.name}", "a complete download", remedy)
        check_sha256(folder / record.name, record.sha256, remedy)
    return combined_sha256(
        {file.name: file.sha256 for file in manifest.files if _is_weights(file.name)}
    )


def _is_weights(name: str) -> bool:
    return name.endswith(".safetensors")
