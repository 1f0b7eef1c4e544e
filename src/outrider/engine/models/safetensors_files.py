"""Which safetensors file of a model's folder holds which tensor."""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from outrider.errors import CorruptFile, UnsupportedModel

INDEX_FILE = "model.safetensors.index.json"
"""Names the file of every tensor, where there are several files."""

PICKLED = (".bin", ".pt", ".pth", ".ckpt")
"""Endings of weights that are not read, since loading them may run code."""


def find_tensors(folder: Path) -> dict[str, Path]:
    """The file of every tensor in `folder`; raises CorruptFile where a file is missing or cut."""
    file_of: dict[str, Path] = {}
    for file in _weight_files(folder):
        try:
            with safe_open(file, framework="pt") as opened:
                file_of |= dict.fromkeys(opened.keys(), file)
        except (SafetensorError, OSError) as error:
            raise CorruptFile(
                f"{file} does not parse ({error})",
                "a complete safetensors file",
                "download it again",
            ) from error
    return file_of


def read_json_object(path: Path, what: str) -> dict[str, Any]:
    """The object in a JSON file; raises CorruptFile where there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CorruptFile(f"{path} is not JSON ({error})", what, "download it again") from error
    if not isinstance(content, dict):
        raise CorruptFile(f"{path} holds no JSON object", what, "download it again")
    return content


def refuse_pickled(path: Path) -> None:
    """Raises UnsupportedModel where `path` ends as pickled weights do."""
    if path.suffix in PICKLED:
        raise UnsupportedModel(
            f"{path} is pickled, which may run code as it loads",
            "safetensors or GGUF weights",
            "convert the model to one of them",
        )


def _weight_files(folder: Path) -> list[Path]:
    index = folder / INDEX_FILE
    if not index.exists():
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            for file in sorted(folder.iterdir()):
                refuse_pickled(file)
            raise CorruptFile(
                f"{folder} has no *.safetensors file", "the model's weights", "download them again"
            )
        return files
    named = read_json_object(index, "an index of tensors").get("weight_map")
    if not isinstance(named, dict) or any(Path(str(each)).name != each for each in named.values()):
        raise CorruptFile(f"{index} names no files", "an index of tensors", "download it again")
    files = sorted(folder / each for each in set(named.values()))
    for file in files:
        if not file.is_file():
            raise CorruptFile(
                f"{folder} has no {file.name}",
                f"the {len(files)} files that its index names",
                "download it again",
            )
    return files
