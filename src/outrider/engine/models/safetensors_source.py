"""Weights and shape from a Hugging Face folder with safetensors files."""

from dataclasses import replace
from pathlib import Path

import torch
from safetensors import safe_open

from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.families.registry import family_of
from outrider.engine.models.families.settings import Settings
from outrider.engine.models.safetensors_files import find_tensors, read_json_object
from outrider.engine.models.source import checked
from outrider.errors import CorruptFile, UnsupportedModel

_PREFIXES = ("model.", "language_model.model.", "model.language_model.")
"""What comes before the names of the decoder's weights; the later two where it also sees images."""

_BUFFER = "rotary_emb.inv_freq"
"""Stored by old releases of transformers; computed from the config instead."""


class SafetensorsSource:
    """A folder holding `config.json` and one or several `*.safetensors` files.

    `generation_config.json`, where there is one, may add to the tokens that end a text.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = _read_config(path)
        self._family = family_of(self.config.family)
        self._file_of = find_tensors(path)
        self._prefix = next(
            (each for each in _PREFIXES if f"{each}embed_tokens.weight" in self._file_of),
            _PREFIXES[0],
        )
        self._refuse_unused_weights()

    def tensor(self, name: str) -> torch.Tensor:
        """See `WeightSource.tensor`; in the type it is stored in, but for norms with an offset."""
        stored = self._stored_name(name)
        file = self._file_of.get(stored)
        if file is None:
            raise CorruptFile(
                f"{self.path} has no tensor {stored}",
                f"a complete {self.config.family} model",
                "download it again",
            )
        with safe_open(file, framework="pt") as opened:
            weight = checked(opened.get_tensor(stored), name, self.config, file)
        if self._family.norm_offset and name.endswith("norm.weight"):
            return weight.float() + self._family.norm_offset
        return weight

    def _stored_name(self, name: str) -> str:
        if not name.startswith("model."):
            return self._prefix.removesuffix("model.") + name
        *stem, part, kind = name.removeprefix("model.").split(".")
        return self._prefix + ".".join((*stem, self._family.renamed.get(part, part), kind))

    def _refuse_unused_weights(self) -> None:
        used = {self._stored_name(name) for name in self.config.weight_names}
        for name in self._file_of:
            in_layer = name.startswith(f"{self._prefix}layers.") and not name.endswith(_BUFFER)
            if in_layer and name not in used:
                raise UnsupportedModel(
                    f"{self.path} holds {name}",
                    f"the weights of a plain {self.config.family} model",
                    "choose another",
                )


def _read_config(folder: Path) -> DecoderConfig:
    path = folder / "config.json"
    if not path.is_file():
        raise CorruptFile(
            f"{folder} has no config.json",
            "a Hugging Face model folder",
            "download it again or give a .gguf file",
        )
    stated = read_json_object(path, "a model config")
    config = family_of(stated.get("model_type")).read(Settings(stated))
    further = folder / "generation_config.json"
    if not further.is_file():
        return config
    ends = Settings(read_json_object(further, "a generation config")).ids("eos_token_id")
    return replace(config, eos_token_ids=tuple(dict.fromkeys(config.eos_token_ids + ends)))
