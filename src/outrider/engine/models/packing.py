"""A decoder's weights as the CPU kernels take them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from outrider.engine.kernels.arguments import Constants, Ends, Layers, Rope
from outrider.engine.kernels.attention.base import CacheFormat
from outrider.engine.kernels.attention.registry import CACHE_FORMATS
from outrider.engine.kernels.formats.base import PANEL, WeightFormat
from outrider.engine.kernels.formats.registry import FORMATS
from outrider.engine.kernels.memory import aligned_zeros
from outrider.engine.kernels.panel import pack
from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.rope import rope_tables
from outrider.engine.models.source import WeightSource

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Packing:
    """The formats of a decoder's matrices and of its cache; norms and biases are float32."""

    layers: WeightFormat
    head: WeightFormat
    embedding: WeightFormat
    cache: CacheFormat

    @classmethod
    def of(cls, layers: str, head: str | None = None, embedding: str | None = None) -> "Packing":
        """Formats by name; what is not given is as the layers are, the cache if there is such."""
        return cls(
            FORMATS[layers],
            FORMATS[head or layers],
            FORMATS[embedding or layers],
            CACHE_FORMATS.get(layers, CACHE_FORMATS["float32"]),
        )

    def step_bytes(self, config: DecoderConfig) -> float:
        """What one step reads: all matrices but the embedding, of which it needs a few rows."""
        head = config.vocab_size * config.hidden_size
        layers = config.parameters - (head if config.tied_embeddings else 2 * head)
        return (layers * self.layers.bits_per_weight + head * self.head.bits_per_weight) / 8

    def weight_bytes(self, config: DecoderConfig) -> float:
        """What all weights take in memory."""
        shared = config.tied_embeddings and self.embedding is self.head
        embedding = 0 if shared else config.vocab_size * config.hidden_size
        return self.step_bytes(config) + embedding * self.embedding.bits_per_weight / 8


_BFLOAT16 = ("bfloat16 in tiles", "bfloat16")
"""Both keep the same weights; the faster first."""

PACKINGS: Mapping[str, Packing] = MappingProxyType(
    {
        "bfloat16": Packing.of(next(name for name in _BFLOAT16 if name in FORMATS)),
        "float32": Packing.of("float32"),
        "int8": Packing.of("int8", embedding="bfloat16"),
        # The head chooses the token; GGUF files too give it more bits.
        "int4": Packing.of("int4", head="int8", embedding="bfloat16"),
    }
)
"""How the weights are packed for each type that a user may name."""


def pack_ends(source: WeightSource, packing: Packing) -> Ends:
    """Embedding, final norm and head; a tied head of the same format is the embedding itself."""
    weight = source.tensor("model.embed_tokens.weight")
    embedding = pack(weight, packing.embedding)
    if not source.config.tied_embeddings:
        head = pack(source.tensor("lm_head.weight"), packing.head)
    else:
        head = embedding if packing.head is packing.embedding else pack(weight, packing.head)
    return Ends(embedding, _vector(source.tensor("model.norm.weight")), head)


def pack_layers(source: WeightSource, packing: Packing) -> Layers:
    """The weights of all layers."""
    config = source.config
    padding = torch.zeros(-config.intermediate_size % PANEL, config.hidden_size)

    def tensor(layer: int, name: str) -> torch.Tensor:
        return source.tensor(f"model.layers.{layer}.{name}")

    def vectors(*names: str, present: bool = True) -> Array:
        if not present:
            return np.zeros((config.num_layers, 0), np.float32)
        return _stacked(
            config.num_layers, lambda i: _vector(torch.cat([tensor(i, name) for name in names]))
        )

    def matrices(*names: str) -> Array:
        return _stacked(
            config.num_layers,
            lambda i: pack(torch.cat([tensor(i, name) for name in names]), packing.layers),
        )

    def gate_up(i: int) -> Array:
        gate, up = (tensor(i, f"mlp.{name}_proj.weight") for name in ("gate", "up"))
        return pack(torch.cat([gate, padding, up, padding]), packing.layers)

    projections = [f"self_attn.{name}_proj" for name in "qkv"]
    return Layers(
        attention_norm=vectors("input_layernorm.weight"),
        qkv=matrices(*(f"{name}.weight" for name in projections)),
        qkv_bias=vectors(*(f"{name}.bias" for name in projections), present=config.qkv_bias),
        query_norm=vectors("self_attn.q_norm.weight", present=config.qk_norm),
        key_norm=vectors("self_attn.k_norm.weight", present=config.qk_norm),
        output=matrices("self_attn.o_proj.weight"),
        output_norm=vectors("attention_output_norm.weight", present=config.post_norms),
        mlp_norm=vectors("mlp_norm.weight"),
        gate_up=_stacked(config.num_layers, gate_up),
        down=matrices("mlp.down_proj.weight"),
        down_norm=vectors("mlp_output_norm.weight", present=config.post_norms),
        window=np.array(config.windows, np.int64),
        rope=np.array(config.rope_of_layer, np.int64),
    )


def kernel_constants(config: DecoderConfig) -> Constants:
    """The numbers of a family."""
    return Constants(
        epsilon=np.float32(config.rms_norm_eps),
        attention_scale=np.float32(config.attention_scale),
        embedding_scale=np.float32(config.embedding_scale),
        gelu=config.activation == "gelu_tanh",
        vocab_size=config.vocab_size,
    )


def stacked_rope(config: DecoderConfig, positions: int) -> Rope:
    """The tables of all kinds of layers."""
    cos, sin = zip(
        *(rope_tables(rope, config.head_dim, positions) for rope in config.ropes), strict=True
    )
    return Rope(torch.stack(cos).numpy(), torch.stack(sin).numpy())


def _vector(weight: torch.Tensor) -> Array:
    return weight.float().numpy()


def _stacked(count: int, part: Callable[[int], Array]) -> Array:
    """`part(0)` to `part(count - 1)` in one array, one of them at a time in memory besides."""
    first = part(0)
    stack = aligned_zeros((count, *first.shape), first.dtype)
    stack[0] = first
    for i in range(1, count):
        stack[i] = part(i)
    return stack
