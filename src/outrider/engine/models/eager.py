"""The decoder in plain torch operators, for any device that torch drives: the reference."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import torch
from torch import Tensor
from torch.nn import functional

from outrider.engine.models.base import BLOCK_TOKENS, Rows
from outrider.engine.models.buckets import Bucket, Buckets, padded_rows, paged_bucket
from outrider.engine.models.config import Activation, DecoderConfig
from outrider.engine.models.graphs import BucketRunner
from outrider.engine.models.paged_rows import PagedRows, paged_rows
from outrider.engine.models.rope import rope_tables
from outrider.engine.models.source import WeightSource

LOGIT_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.5, torch.float16: 0.1}
"""Logits of one row in two batch shapes differ by less than this; a gap below it is a near-tie.

The rounding of a type (2^-24, 2^-9, 2^-12 of logits up to about 40), accumulated over layers.
"""

ACTIVATIONS: Mapping[Activation, Callable[[Tensor], Tensor]] = MappingProxyType(
    {"silu": functional.silu, "gelu_tanh": partial(functional.gelu, approximate="tanh")}
)

Weights = Mapping[str, Tensor]
"""One layer's weights, by the names of `DecoderConfig.layer_parts`."""


class EagerDecoder:
    """Matrices, activations and cache in one type on one device; norms and rotation in float32.

    With a `runner`, batches of few rows for each sequence are filled up to a bucket and run there.
    """

    def __init__(
        self,
        source: WeightSource,
        *,
        dtype: torch.dtype,
        num_blocks: int,
        max_length: int,
        device: torch.device,
        runner: BucketRunner | None = None,
    ) -> None:
        self.config = config = source.config
        self.num_blocks = num_blocks
        self.max_length = max_length
        self.logit_tolerance = LOGIT_TOLERANCE[dtype]
        self._device = device
        self._runner = runner
        self._buckets = Buckets(max_length=max_length, dump=num_blocks)

        def weight(name: str) -> Tensor:
            wide = name.endswith("norm.weight")
            return source.tensor(name).to(device, torch.float32 if wide else dtype)

        self._embedding = weight("model.embed_tokens.weight")
        # In the type of the weights, as models with a scale were trained.
        self._embedding_scale = torch.tensor(config.embedding_scale, dtype=dtype, device=device)
        self._head = self._embedding if config.tied_embeddings else weight("lm_head.weight")
        self._final_norm = weight("model.norm.weight")
        self._layers: list[Weights] = [
            {part: weight(f"model.layers.{i}.{part}") for part in config.layer_parts}
            for i in range(config.num_layers)
        ]
        self._ropes = [
            tuple(table.to(device) for table in rope_tables(rope, config.head_dim, max_length))
            for rope in config.ropes
        ]
        places = (num_blocks + 1) * BLOCK_TOKENS  # with the dump of the buckets
        shape = (config.num_layers, places, config.num_kv_heads, config.head_dim)
        self._keys = torch.zeros(shape, dtype=dtype, device=device)
        self._values = torch.zeros(shape, dtype=dtype, device=device)

    @staticmethod
    def kv_bytes_per_token(config: DecoderConfig, dtype: torch.dtype) -> int:
        """What one token's keys and values take in the cache, in all layers together."""
        return 2 * config.num_layers * config.num_kv_heads * config.head_dim * dtype.itemsize

    @torch.inference_mode()
    def forward(self, rows: Rows) -> Tensor:
        """See `TargetModel.forward`."""
        features = self._features_by_bucket(rows)
        if features is None:
            features = self._features(paged_rows(rows, self.config.windows, self._device))
        return functional.linear(features[: len(rows.wanted)], self._head).float()

    def _features_by_bucket(self, rows: Rows) -> Tensor | None:
        """`_features`, and after them those of rows that fill up; None for what fits no bucket."""
        if self._runner is None:
            return None
        padded = padded_rows(rows, self._buckets)
        return None if padded is None else self._runner.run(padded, self._bucket_features)

    def _bucket_features(self, bucket: Bucket, numbers: Tensor) -> Tensor:
        return self._features(paged_bucket(numbers, bucket, set(self.config.windows)))

    def _features(self, batch: PagedRows) -> Tensor:
        """Extends the cache by `batch` and returns what the head reads [len(wanted), hidden size].

        Waits for nothing, and its sizes are those of the batch: what CUDA graphs can repeat.
        """
        config = self.config
        turns = [
            tuple(table[batch.positions].unsqueeze(1) for table in tables) for tables in self._ropes
        ]
        x = self._embedding[batch.token_ids] * self._embedding_scale
        for layer, weights in enumerate(self._layers):
            cos, sin = turns[config.rope_of_layer[layer]]
            normed = self._norm(x, weights["input_layernorm.weight"])
            attended = self._attention(layer, weights, normed, batch, cos, sin)
            if config.post_norms:
                attended = self._norm(attended, weights["attention_output_norm.weight"])
            x = x + attended
            changed = self._mlp(weights, self._norm(x, weights["mlp_norm.weight"]))
            if config.post_norms:
                changed = self._norm(changed, weights["mlp_output_norm.weight"])
            x = x + changed
        return self._norm(x[batch.wanted], self._final_norm)

    def _attention(
        self, layer: int, weights: Weights, x: Tensor, batch: PagedRows, cos: Tensor, sin: Tensor
    ) -> Tensor:
        """Caches the rows' keys and values, then lets each row see its own sequence."""
        query, key, value = (
            _linear(x, weights, f"self_attn.{each}_proj").view(len(x), -1, self.config.head_dim)
            for each in "qkv"
        )
        if self.config.qk_norm:
            query = self._norm(query, weights["self_attn.q_norm.weight"])
            key = self._norm(key, weights["self_attn.k_norm.weight"])
        query = _rotate(query, cos, sin)
        self._keys[layer, batch.places] = _rotate(key, cos, sin)
        self._values[layer, batch.places] = value
        attended = torch.empty_like(query)
        for group in batch.groups:
            attended[group.rows] = functional.scaled_dot_product_attention(
                query[group.rows].transpose(1, 2),
                self._keys[layer, group.places].transpose(1, 2),
                self._values[layer, group.places].transpose(1, 2),
                attn_mask=group.visible[self.config.windows[layer]],
                scale=self.config.attention_scale,
                enable_gqa=True,
            ).transpose(1, 2)
        return _linear(attended.flatten(1), weights, "self_attn.o_proj")

    def _mlp(self, weights: Weights, x: Tensor) -> Tensor:
        gate = ACTIVATIONS[self.config.activation](_linear(x, weights, "mlp.gate_proj"))
        return _linear(gate * _linear(x, weights, "mlp.up_proj"), weights, "mlp.down_proj")

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.config.rms_norm_eps)
        return (wide * weight).to(x.dtype)


def _linear(x: Tensor, weights: Weights, name: str) -> Tensor:
    return functional.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))


def _rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of [R, heads, D]; the halves of a head form the pairs."""
    a, b = heads.float().chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(heads.dtype)
