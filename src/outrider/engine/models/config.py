"""The shape of a decoder, read from a Hugging Face config or from GGUF metadata."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outrider.errors import UnsupportedModel

FAMILIES = ("llama",)
"""Model families that the engine runs, as `model_type` and `general.architecture` name them."""


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """Sizes and constants of a Llama decoder; `eos_token_ids` may hold none, one or several."""

    family: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    max_positions: int
    tied_embeddings: bool
    eos_token_ids: tuple[int, ...] = ()

    @property
    def parameters(self) -> int:
        """Number of weights, a tied embedding counted once."""
        attention = self.hidden_size * self.head_dim * 2 * (self.num_heads + self.num_kv_heads)
        block = attention + 3 * self.hidden_size * self.intermediate_size + 2 * self.hidden_size
        embeddings = self.vocab_size * self.hidden_size * (1 if self.tied_embeddings else 2)
        return self.num_layers * block + embeddings + self.hidden_size

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of the weight with the Hugging Face name `name`."""
        hidden, inner = self.hidden_size, self.intermediate_size
        queries, keys = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        matrices = {
            "embed_tokens": (self.vocab_size, hidden),
            "q_proj": (queries, hidden),
            "k_proj": (keys, hidden),
            "v_proj": (keys, hidden),
            "o_proj": (hidden, queries),
            "gate_proj": (inner, hidden),
            "up_proj": (inner, hidden),
            "down_proj": (hidden, inner),
            "lm_head": (self.vocab_size, hidden),
        }
        return matrices.get(name.removesuffix(".weight").rpartition(".")[2], (hidden,))

    def kv_bytes_per_token(self, bytes_per_value: int = 4) -> int:
        """Size of one token's keys and values in every layer."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * bytes_per_value


def unsupported_family(family: object) -> UnsupportedModel:
    """The error for a family that is not in `FAMILIES`."""
    return UnsupportedModel(
        f"the model family is {family!r}", f"one of {', '.join(FAMILIES)}", "choose such a model"
    )


def from_huggingface(config: Mapping[str, Any]) -> DecoderConfig:
    """Reads a parsed `config.json`; raises UnsupportedModel for what the engine does not run."""
    family = config.get("model_type")
    if family not in FAMILIES:
        raise unsupported_family(family)
    rope = _section(config, "rope_parameters") or _section(config, "rope_scaling")
    rope_type = rope.get("rope_type", rope.get("type", "default"))
    quantization = _section(config, "quantization_config")
    for setting, seen, supported in (
        ("rope type", rope_type, "default"),
        ("quantization", quantization.get("quant_method"), None),
        ("activation", config.get("hidden_act", "silu"), "silu"),
        ("attention_bias", config.get("attention_bias", False), False),
        ("mlp_bias", config.get("mlp_bias", False), False),
    ):
        if seen != supported:
            raise UnsupportedModel(
                f"the model's {setting} is {seen!r}", repr(supported), "choose a model without it"
            )
    try:
        heads = int(config["num_attention_heads"])
        eos = config.get("eos_token_id")
        decoder = DecoderConfig(
            family=str(family),
            vocab_size=int(config["vocab_size"]),
            hidden_size=int(config["hidden_size"]),
            intermediate_size=int(config["intermediate_size"]),
            num_layers=int(config["num_hidden_layers"]),
            num_heads=heads,
            num_kv_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=int(config.get("head_dim") or config["hidden_size"] // heads),
            rms_norm_eps=float(config["rms_norm_eps"]),
            rope_theta=float(rope.get("rope_theta", config.get("rope_theta", 10_000.0))),
            max_positions=int(config["max_position_embeddings"]),
            tied_embeddings=bool(config.get("tie_word_embeddings", False)),
            eos_token_ids=() if eos is None else tuple(eos) if isinstance(eos, list) else (eos,),
        )
    except KeyError as missing:
        raise UnsupportedModel(
            f"config.json has no {missing}", "a complete Llama config", "export the model again"
        ) from missing
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise UnsupportedModel(
            f"config.json has a value that is none ({error})",
            "a Llama config",
            "export the model again",
        ) from error
    smallest = min(decoder.vocab_size, decoder.num_layers, decoder.num_kv_heads, decoder.head_dim)
    if smallest < 1 or decoder.num_heads % decoder.num_kv_heads:
        raise UnsupportedModel(
            f"config.json describes {decoder.num_layers} layers, {decoder.num_heads} query and"
            f" {decoder.num_kv_heads} key/value heads of {decoder.head_dim}",
            "at least one of each, and query heads in equal groups",
            "export the model again",
        )
    return decoder


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A nested part of the config; empty where it is missing or null."""
    section = config.get(name) or {}
    if not isinstance(section, Mapping):
        raise UnsupportedModel(
            f"config.json has {name} {section!r}", "an object", "export the model again"
        )
    return section
