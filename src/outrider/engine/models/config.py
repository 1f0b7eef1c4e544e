"""The shape of a decoder, and what distinguishes one family from another, as plain values."""

import math
from dataclasses import dataclass
from typing import Literal

from outrider.engine.models.rope import Rope

Activation = Literal["silu", "gelu_tanh"]
"""Of the MLP's gate: SiLU, or GELU in its tanh approximation."""


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """Sizes and constants of a decoder with RMS norms, rotary positions and a gated MLP.

    All that a model needs in order to run any family; nothing asks for the family's name.
    """

    family: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    max_positions: int
    tied_embeddings: bool
    attention_scale: float
    """Factor of the scores, usually `head_dim ** -0.5`."""
    windows: tuple[int, ...]
    """For each layer: how many tokens a token sees, itself included; 0 means all before it."""
    ropes: tuple[Rope, ...]
    rope_of_layer: tuple[int, ...]
    """For each layer: which of `ropes` turns its queries and keys."""
    activation: Activation = "silu"
    qkv_bias: bool = False
    """Whether queries, keys and values have a bias (Qwen 2)."""
    qk_norm: bool = False
    """Whether each query and key head is normed before it is turned (Qwen 3, Gemma 3)."""
    post_norms: bool = False
    """Whether what attention and MLP return is normed before it is added (Gemma 3)."""
    embedding_scale: float = 1.0
    """Factor of the embedding, though not of a head tied to it (Gemma 3: `sqrt(hidden_size)`)."""
    eos_token_ids: tuple[int, ...] = ()
    """Tokens that end a text: none, one or several."""

    @property
    def layer_parts(self) -> tuple[str, ...]:
        """Names of one layer's weights, after `model.layers.{i}.`."""
        projections = ("q", "k", "v")
        return (
            "input_layernorm.weight",
            *(f"self_attn.{each}_proj.weight" for each in projections),
            *(f"self_attn.{each}_proj.bias" for each in projections if self.qkv_bias),
            *(f"self_attn.{each}_norm.weight" for each in ("q", "k") if self.qk_norm),
            "self_attn.o_proj.weight",
            *(("attention_output_norm.weight",) if self.post_norms else ()),
            "mlp_norm.weight",
            *(f"mlp.{each}_proj.weight" for each in ("gate", "up", "down")),
            *(("mlp_output_norm.weight",) if self.post_norms else ()),
        )

    @property
    def weight_names(self) -> tuple[str, ...]:
        """Names of all weights, under which every `WeightSource` delivers them."""
        return (
            "model.embed_tokens.weight",
            *(
                f"model.layers.{i}.{part}"
                for i in range(self.num_layers)
                for part in self.layer_parts
            ),
            "model.norm.weight",
            *(() if self.tied_embeddings else ("lm_head.weight",)),
        )

    @property
    def parameters(self) -> int:
        """Number of weights, a tied embedding counted once."""
        return sum(math.prod(self.shape_of(name)) for name in self.weight_names)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of the weight called `name`."""
        hidden, inner = self.hidden_size, self.intermediate_size
        queries, keys = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        shapes = {
            "embed_tokens": (self.vocab_size, hidden),
            "q_proj": (queries, hidden),
            "k_proj": (keys, hidden),
            "v_proj": (keys, hidden),
            "q_norm": (self.head_dim,),
            "k_norm": (self.head_dim,),
            "o_proj": (hidden, queries),
            "gate_proj": (inner, hidden),
            "up_proj": (inner, hidden),
            "down_proj": (hidden, inner),
            "lm_head": (self.vocab_size, hidden),
        }
        stem, _, kind = name.rpartition(".")
        shape = shapes.get(stem.rpartition(".")[2], (hidden,))
        return shape[:1] if kind == "bias" else shape
