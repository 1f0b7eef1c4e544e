"""The Llama decoder in plain torch operators, for any device that torch drives."""

from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

from outrider.engine.models.base import Rows
from outrider.engine.models.rope import rope_tables
from outrider.engine.models.source import WeightSource

LOGIT_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.5, torch.float16: 0.1}
"""Logits of one row in two batch shapes differ by less than this; a gap below it is a near-tie.

The rounding of a type (2^-24, 2^-9, 2^-12 of logits up to about 40), accumulated over layers.
"""

_LAYER_WEIGHTS = (
    "input_layernorm",
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "post_attention_layernorm",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)


class EagerLlama:
    """Weights, activations and cache in one type on one device."""

    def __init__(
        self,
        source: WeightSource,
        *,
        dtype: torch.dtype,
        slots: int,
        capacity: int,
        device: torch.device,
    ) -> None:
        self.config = config = source.config
        self.dtype = dtype
        self.capacity = capacity
        self.logit_tolerance = LOGIT_TOLERANCE[dtype]
        self._device = device

        def weight(name: str) -> Tensor:
            return source.tensor(name).to(device, dtype)

        self._embedding = weight("model.embed_tokens.weight")
        self._head = self._embedding if config.tied_embeddings else weight("lm_head.weight")
        self._final_norm = weight("model.norm.weight")
        self._layers = [
            {part: weight(f"model.layers.{i}.{part}.weight") for part in _LAYER_WEIGHTS}
            for i in range(config.num_layers)
        ]
        self._rope = tuple(
            table.to(device) for table in rope_tables(config.head_dim, config.rope_theta, capacity)
        )
        shape = (config.num_layers, slots, config.num_kv_heads, capacity, config.head_dim)
        self._keys = torch.zeros(shape, dtype=dtype, device=device)
        self._values = torch.zeros(shape, dtype=dtype, device=device)

    @torch.inference_mode()
    def forward(self, rows: Rows) -> Tensor:
        """See `TargetModel.forward`."""
        token_ids, positions, slots = (
            torch.tensor(list(field), device=self._device)
            for field in (rows.token_ids, rows.positions, rows.slots)
        )
        cos, sin = (table[positions].unsqueeze(1) for table in self._rope)
        x = self._embedding[token_ids]
        for layer, weights in enumerate(self._layers):
            normed = self._norm(x, weights["input_layernorm"])
            attended = self._attention(layer, weights, normed, positions, slots, (cos, sin))
            x = x + functional.linear(attended, weights["self_attn.o_proj"])
            normed = self._norm(x, weights["post_attention_layernorm"])
            gate = functional.silu(functional.linear(normed, weights["mlp.gate_proj"]))
            up = functional.linear(normed, weights["mlp.up_proj"])
            x = x + functional.linear(gate * up, weights["mlp.down_proj"])
        wanted = self._norm(x[list(rows.wanted)], self._final_norm)
        return functional.linear(wanted, self._head).float()

    def _attention(
        self,
        layer: int,
        weights: dict[str, Tensor],
        x: Tensor,
        positions: Tensor,
        slots: Tensor,
        rope: tuple[Tensor, Tensor],
    ) -> Tensor:
        """Caches the rows' keys and values, then attends for each request in turn."""
        size = self.config.head_dim
        query, key, value = (
            functional.linear(x, weights[f"self_attn.{name}_proj"]).view(len(x), -1, size)
            for name in "qkv"
        )
        query = _rotate(query, *rope)
        self._keys[layer, slots, :, positions] = _rotate(key, *rope)
        self._values[layer, slots, :, positions] = value
        changes = (slots.diff() != 0).nonzero().flatten().add(1).tolist()
        attended = torch.empty_like(query)
        for start, end in pairwise([0, *changes, len(x)]):
            slot, length = int(slots[start]), int(positions[end - 1]) + 1
            visible = torch.arange(length, device=x.device) <= positions[start:end, None]
            attended[start:end] = functional.scaled_dot_product_attention(
                query[start:end].transpose(0, 1).unsqueeze(0),
                self._keys[layer, slot, :, :length].unsqueeze(0),
                self._values[layer, slot, :, :length].unsqueeze(0),
                attn_mask=visible,
                enable_gqa=True,
            )[0].transpose(0, 1)
        return attended.flatten(1)

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.config.rms_norm_eps)
        return weight * wide.to(x.dtype)


def _rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of [R, heads, D]; the halves of a head form the pairs."""
    a, b = heads.float().chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(heads.dtype)
