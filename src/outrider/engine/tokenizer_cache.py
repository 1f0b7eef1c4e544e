"""Reading tokenizers, and keeping a GGUF file's in a form that takes no conversion to read."""

import shutil
import tempfile
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from outrider.engine.models.checksum import file_sha256, listing

SEAL_FILE = "SHA256SUMS"
"""Written last; a kept tokenizer counts only while its files are as listed here."""


def kept_folder(cache_dir: Path, gguf_sha256: str) -> Path:
    """Where the tokenizer of the GGUF file with that SHA-256 is kept.

    The versions of what converts and stores it are part of the name.
    """
    packages = ("transformers", "tokenizers")
    versions = [f"{package}-{metadata.version(package)}" for package in packages]
    return cache_dir / "tokenizers" / "-".join([gguf_sha256, *versions])


def read_tokenizer(path: Path) -> Any:
    """The transformers tokenizer of a GGUF file, converted, or of a Hugging Face folder."""
    # Imported here because it takes seconds, which `outrider --help` should not.
    from transformers import AutoTokenizer  # noqa: PLC0415

    folder, extra = (path, {}) if path.is_dir() else (path.parent, {"gguf_file": path.name})
    return AutoTokenizer.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False, **extra
    )


def read_converted(gguf: Path, kept: Path) -> Any:
    """The tokenizer of a GGUF file from the folder `kept`; converts and keeps it where it is not.

    A tokenizer that cannot be kept, or reads back otherwise, is converted each time.
    """
    if _is_complete(kept):
        return read_tokenizer(kept)
    tokenizer = read_tokenizer(gguf)
    with suppress(Exception):  # what was converted works, whatever becomes of its copy
        _keep(tokenizer, kept)
    return tokenizer


def _is_complete(folder: Path) -> bool:
    try:
        return (folder / SEAL_FILE).read_bytes() == _seal(folder)
    except OSError:
        return False


def _seal(folder: Path) -> bytes:
    files = {
        file.relative_to(folder).as_posix(): file_sha256(file)
        for file in folder.rglob("*")
        if file.is_file() and file.name != SEAL_FILE
    }
    return listing(files).encode()


def _keep(tokenizer: Any, folder: Path) -> None:
    """Saves `tokenizer` as `folder`, in one step, if it reads back the same."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=folder.parent) as scratch:
        saved = Path(scratch) / folder.name
        tokenizer.save_pretrained(saved)
        if _behaviour(read_tokenizer(saved)) != _behaviour(tokenizer):
            return
        (saved / SEAL_FILE).write_bytes(_seal(saved))
        shutil.rmtree(folder, ignore_errors=True)
        saved.replace(folder)


def _behaviour(tokenizer: Any) -> tuple[object, ...]:
    """All that decides how it encodes, decodes, lays out a chat and ends it."""
    return (
        tokenizer.backend_tokenizer.to_str(),
        tokenizer.clean_up_tokenization_spaces,
        tokenizer.chat_template,
        tokenizer.eos_token_id,
    )
