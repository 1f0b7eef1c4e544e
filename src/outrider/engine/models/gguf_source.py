"""Weights and shape from a GGUF file."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.families.registry import family_of
from outrider.engine.models.families.settings import Settings
from outrider.engine.models.gguf_reader import HeaderReader, values
from outrider.engine.models.gguf_settings import stated_settings
from outrider.engine.models.rope import Rope
from outrider.engine.models.source import checked
from outrider.errors import CorruptFile, UnsupportedModel

_GLOBAL_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.o_proj": "attn_output",
    "attention_output_norm": "post_attention_norm",
    "mlp_norm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp_output_norm": "post_ffw_norm",
}
_ROPE_DIVISORS = "rope_freqs.weight"
"""What GGUF holds of a llama3 rope: by how much each pair of a head is slowed."""


class GgufSource:
    """A GGUF file, its tensors dequantized to float32 on demand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._reader = HeaderReader(str(path))
        except Exception as error:
            raise CorruptFile(
                f"{path} does not parse ({error})", "a complete GGUF file", "download it again"
            ) from error
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        architecture = self._field("general.architecture")
        self._family = family_of(architecture)
        self.config = self._read_config(architecture)
        self._refuse_unused_tensors()

    def tensor(self, name: str) -> torch.Tensor:
        """See `WeightSource.tensor`; float32."""
        weight = checked(self._values(_gguf_name(name)), name, self.config, self.path)
        if self._family.interleaved and ".q_proj." in name:
            return _restore_halves(weight, self.config.num_heads)
        if self._family.interleaved and ".k_proj." in name:
            return _restore_halves(weight, self.config.num_kv_heads)
        return weight

    def _values(self, name: str) -> torch.Tensor:
        stored = self._stored(name)
        try:
            return torch.from_numpy(values(stored))
        except NotImplementedError as error:
            raise UnsupportedModel(
                f"{name} is stored as {stored.tensor_type.name}",
                "a type that the gguf package dequantizes",
                "take another quantization of the model",
            ) from error

    def _stored(self, name: str) -> Any:
        if name in self._tensors:
            return self._tensors[name]
        raise CorruptFile(
            f"{self.path} has no tensor {name}",
            f"a complete {self._family.name} model",
            "download it again",
        )

    def _read_config(self, architecture: str) -> DecoderConfig:
        metadata = {
            key: self._field(key)
            for key in self._reader.fields
            if key.startswith(f"{architecture}.") or key.endswith("_token_id")
        }
        settings = stated_settings(str(self.path), metadata, architecture) | {
            "vocab_size": int(self._stored("token_embd.weight").shape[1]),
            "tie_word_embeddings": "output.weight" not in self._tensors,
        }
        config = self._family.read(Settings(settings))
        if _ROPE_DIVISORS not in self._tensors:
            return config
        if config.ropes != (Rope(config.ropes[0].theta),):
            raise UnsupportedModel(
                f"{self.path.name} scales its rotary positions in two ways", "one", "choose another"
            )
        divisors = tuple(self._values(_ROPE_DIVISORS).tolist())
        if len(divisors) != config.head_dim // 2:
            raise CorruptFile(
                f"{_ROPE_DIVISORS} in {self.path} is [{len(divisors)}]",
                f"[{config.head_dim // 2}], as its metadata says",
                "download it again",
            )
        return replace(config, ropes=(Rope(config.ropes[0].theta, "divisors", divisors=divisors),))

    def _refuse_unused_tensors(self) -> None:
        """Raises for biases, or the experts of a mixture, which have the architecture llama too."""
        used = {_ROPE_DIVISORS, *map(_gguf_name, self.config.weight_names)}
        for name in self._tensors:
            if name not in used:
                raise UnsupportedModel(
                    f"{self.path.name} holds {name}",
                    f"the weights of a plain {self._family.name} model",
                    "choose another",
                )

    def _field(self, key: str) -> Any:
        field = self._reader.get_field(key)
        if field is None:
            raise CorruptFile(
                f"{self.path} lacks {key}", "a complete GGUF file", "download it again"
            )
        return field.contents()


def _gguf_name(name: str) -> str:
    if name in _GLOBAL_NAMES:
        return _GLOBAL_NAMES[name]
    layer, part = name.removeprefix("model.layers.").split(".", 1)
    stem, _, kind = part.rpartition(".")
    return f"blk.{layer}.{_LAYER_NAMES[stem]}.{kind}"


def _restore_halves(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Undoes the interleaving of rotary pairs that GGUF conversion applies to q and k."""
    rows, columns = weight.shape
    return weight.view(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)
