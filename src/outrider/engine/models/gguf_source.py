"""Weights and shape from a GGUF file."""

from pathlib import Path
from typing import Any

import torch

from outrider.engine.models.config import FAMILIES, DecoderConfig, unsupported_family
from outrider.engine.models.gguf_reader import HeaderReader, values
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
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


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
        self.config = self._read_config()

    def tensor(self, name: str) -> torch.Tensor:
        """The weight with the Hugging Face name `name`, float32, rotary halves in HF order."""
        stored = self._stored(_gguf_name(name))
        try:
            weight = checked(torch.from_numpy(values(stored)), name, self.config, self.path)
        except NotImplementedError as error:
            raise UnsupportedModel(
                f"{name} is stored as {stored.tensor_type.name}",
                "a type that the gguf package dequantizes",
                "take another quantization of the model",
            ) from error
        if name.endswith("q_proj.weight"):
            return _restore_halves(weight, self.config.num_heads)
        if name.endswith("k_proj.weight"):
            return _restore_halves(weight, self.config.num_kv_heads)
        return weight

    def _stored(self, name: str) -> Any:
        if name in self._tensors:
            return self._tensors[name]
        raise CorruptFile(
            f"{self.path} has no tensor {name}", "a complete Llama model", "download it again"
        )

    def _read_config(self) -> DecoderConfig:
        family = self._field("general.architecture")
        if family not in FAMILIES:
            raise unsupported_family(family)
        if "rope_freqs.weight" in self._tensors or self._field(
            f"{family}.rope.scaling.type", "none"
        ) not in ("none", "default"):
            raise UnsupportedModel(
                f"{self.path.name} scales its rotary positions", "default rope", "choose another"
            )
        # Biases, or the experts of a mixture, which have the architecture "llama" too.
        if strange := next((name for name in self._tensors if not _is_llama(name)), None):
            raise UnsupportedModel(
                f"{self.path.name} holds {strange}",
                "the weights of a plain Llama",
                "choose another",
            )
        heads = int(self._field(f"{family}.attention.head_count"))
        hidden = int(self._field(f"{family}.embedding_length"))
        eos = self._field("tokenizer.ggml.eos_token_id", None)
        return DecoderConfig(
            family=str(family),
            vocab_size=int(self._stored("token_embd.weight").shape[1]),
            hidden_size=hidden,
            intermediate_size=int(self._field(f"{family}.feed_forward_length")),
            num_layers=int(self._field(f"{family}.block_count")),
            num_heads=heads,
            num_kv_heads=int(self._field(f"{family}.attention.head_count_kv", heads)),
            head_dim=int(self._field(f"{family}.attention.key_length", hidden // heads)),
            rms_norm_eps=float(self._field(f"{family}.attention.layer_norm_rms_epsilon")),
            rope_theta=float(self._field(f"{family}.rope.freq_base", 10_000.0)),
            max_positions=int(self._field(f"{family}.context_length")),
            tied_embeddings="output.weight" not in self._tensors,
            eos_token_ids=() if eos is None else (int(eos),),
        )

    def _field(self, key: str, *default: Any) -> Any:
        field = self._reader.get_field(key)
        if field is not None:
            return field.contents()
        if default:
            return default[0]
        raise CorruptFile(f"{self.path} lacks {key}", "a complete GGUF file", "download it again")


def _gguf_name(name: str) -> str:
    if name in _GLOBAL_NAMES:
        return _GLOBAL_NAMES[name]
    _, _, layer, part = name.split(".", 3)
    return f"blk.{layer}.{_LAYER_NAMES[part.removesuffix('.weight')]}.weight"


def _is_llama(name: str) -> bool:
    """Whether the engine uses the tensor with the GGUF name `name`."""
    if name in _GLOBAL_NAMES.values():
        return True
    block, _, part = name.partition(".")[2].partition(".")
    return block.isdecimal() and part.removesuffix(".weight") in _LAYER_NAMES.values()


def _restore_halves(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Undoes the interleaving of rotary pairs that GGUF conversion applies to q and k."""
    rows, columns = weight.shape
    return weight.view(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)
