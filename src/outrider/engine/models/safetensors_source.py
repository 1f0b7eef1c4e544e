"""Weights and shape from a Hugging Face folder with safetensors files."""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from outrider.engine.models.config import DecoderConfig, from_huggingface
from outrider.engine.models.source import checked
from outrider.errors import CorruptFile


class SafetensorsSource:
    """A folder holding `config.json` and one or several `*.safetensors` files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = _read_config(path / "config.json")
        self._file_of: dict[str, Path] = {}
        files = sorted(path.glob("*.safetensors"))
        if not files:
            raise CorruptFile(
                f"{path} has no *.safetensors file", "the model's weights", "download them again"
            )
        for file in files:
            try:
                with safe_open(file, framework="pt") as opened:
                    self._file_of |= dict.fromkeys(opened.keys(), file)
            except (SafetensorError, OSError) as error:
                raise CorruptFile(
                    f"{file} does not parse ({error})",
                    "a complete safetensors file",
                    "download it again",
                ) from error

    def tensor(self, name: str) -> torch.Tensor:
        """The weight called `name`, in the type it is stored in."""
        file = self._file_of.get(name)
        if file is None:
            raise CorruptFile(
                f"{self.path} has no tensor {name}", "a complete Llama model", "download it again"
            )
        with safe_open(file, framework="pt") as opened:
            return checked(opened.get_tensor(name), name, self.config, file)


def _read_config(path: Path) -> DecoderConfig:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CorruptFile(
            f"{path.parent} has no config.json",
            "a Hugging Face model folder",
            "download it again or give a .gguf file",
        ) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CorruptFile(
            f"{path} is not JSON ({error})", "a model config", "download it again"
        ) from error
    if not isinstance(config, dict):
        raise CorruptFile(f"{path} holds no JSON object", "a model config", "download it again")
    return from_huggingface(config)
