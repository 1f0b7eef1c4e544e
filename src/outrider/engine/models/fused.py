"""The Llama decoder on the compiled CPU kernels."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from outrider.engine.kernels.decoder import REGIONS_PER_LAYER, SPAN, forward
from outrider.engine.kernels.panel import PANEL, pack
from outrider.engine.kernels.team import new_counters
from outrider.engine.models.base import Rows
from outrider.engine.models.rope import rope_tables
from outrider.engine.models.source import WeightSource
from outrider.errors import UnsupportedModel

Array = np.ndarray[Any, np.dtype[Any]]

PREFILL_ROWS = 96
"""Rows of one kernel call: enough to be bound by arithmetic, few enough to stay in cache."""


class FusedLlama:
    """Weights in bfloat16 or float32, activations and sums in float32.

    Results do not depend on which rows share a pass, so `logit_tolerance` is 0.
    """

    logit_tolerance = 0.0

    def __init__(
        self, source: WeightSource, *, dtype: torch.dtype, slots: int, capacity: int, threads: int
    ) -> None:
        self.config = config = source.config
        self.dtype = dtype
        self.capacity = capacity
        if config.hidden_size % PANEL or config.head_dim % SPAN:
            raise UnsupportedModel(
                f"the hidden size is {config.hidden_size}, the head size {config.head_dim}",
                f"multiples of {PANEL} and {SPAN}",
                "run with --backend torch",
            )
        # The largest matrices first: each is held in float32 for a moment.
        embedding = pack(source.tensor("model.embed_tokens.weight"), dtype)
        head = embedding if config.tied_embeddings else pack(source.tensor("lm_head.weight"), dtype)
        self._ends = (embedding, _vector(source.tensor("model.norm.weight")), head)
        self._layers = pack_layers(source, dtype)
        cos, sin = rope_tables(config.head_dim, config.rope_theta, capacity)
        self._rope = (cos.numpy(), sin.numpy())
        spans = -(-capacity // SPAN)
        shape = (config.num_layers, slots, config.num_kv_heads)
        self._cache = (
            np.zeros((*shape, spans, config.head_dim, SPAN), np.float32),
            np.zeros((*shape, spans * SPAN, config.head_dim), np.float32),
        )
        self._logits = np.empty((0, head.shape[0] * PANEL), np.float32)
        self._threads = threads
        self._helpers = ThreadPoolExecutor(max(1, threads - 1), "outrider-kernel")

    def forward(self, rows: Rows) -> torch.Tensor:
        """See `TargetModel.forward`."""
        fields = [
            np.asarray(field, np.int64) for field in (rows.token_ids, rows.positions, rows.slots)
        ]
        # The kernels check no bounds.
        limits = (self.config.vocab_size, self.capacity, self._cache[0].shape[1])
        for field, limit in zip(fields, limits, strict=True):
            assert field.min() >= 0, "a row outside the model or its cache"
            assert field.max() < limit, "a row outside the model or its cache"
        wanted = np.asarray(rows.wanted, np.int64)
        logits = self._logits_buffer(len(wanted))
        for start in range(0, len(fields[0]), PREFILL_ROWS):
            end = start + PREFILL_ROWS
            first, last = np.searchsorted(wanted, (start, end))
            part = (*(field[start:end] for field in fields), wanted[first:last] - start)
            self._run(part, logits[first:last])
        return torch.from_numpy(logits)[:, : self.config.vocab_size]

    def _logits_buffer(self, count: int) -> Array:
        """Room for `count` rows of logits, the same each time: fresh pages cost a millisecond."""
        if len(self._logits) < count:
            self._logits = np.empty((count, self._logits.shape[1]), np.float32)
        return self._logits[:count]

    def _run(self, rows: tuple[Array, ...], logits: Array) -> None:
        """Lets the team of threads run one forward pass; this thread is one of them."""
        config = self.config
        count = len(rows[0])
        kv_heads = 2 * config.num_kv_heads
        shared = (
            np.empty((count, config.hidden_size), np.float32),
            np.empty((count, config.num_heads + kv_heads, config.head_dim), np.float32),
            np.empty((count, config.num_heads, config.head_dim), np.float32),
            np.empty((count, config.intermediate_size), np.float32),
        )
        arguments: tuple[Any, ...] = (
            new_counters(REGIONS_PER_LAYER * config.num_layers + 2, self._threads),
            rows,
            self._layers,
            self._ends,
            self._rope,
            self._cache,
            shared,
            np.float32(config.rms_norm_eps),
            logits,
        )
        for thread in range(1, self._threads):
            self._helpers.submit(forward, thread, *arguments)
        forward(0, *arguments)


def _vector(weight: torch.Tensor) -> Array:
    return weight.float().numpy()


def pack_layers(source: WeightSource, dtype: torch.dtype) -> tuple[Array, ...]:
    """The weights of all L layers as `kernels.decoder.forward` takes them.

    Attention norms [L, H], packed q, k and v [L, (Q + 2 G) D, H], packed output [L, H, Q D], MLP
    norms [L, H], packed gate and up [L, 2 I, H], each of them in whole panels, and packed down
    [L, H, I].
    """
    config = source.config
    padding = torch.zeros(-config.intermediate_size % PANEL, config.hidden_size)

    def weight(layer: int, part: str) -> torch.Tensor:
        return source.tensor(f"model.layers.{layer}.{part}.weight")

    def norms(part: str) -> Array:
        return _stacked(config.num_layers, lambda i: _vector(weight(i, part)))

    def matrices(*parts: str) -> Array:
        return _stacked(
            config.num_layers,
            lambda i: pack(torch.cat([weight(i, part) for part in parts]), dtype),
        )

    def gate_up(i: int) -> Array:
        gate, up = (weight(i, f"mlp.{part}_proj") for part in ("gate", "up"))
        return pack(torch.cat([gate, padding, up, padding]), dtype)

    return (
        norms("input_layernorm"),
        matrices("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        matrices("self_attn.o_proj"),
        norms("post_attention_layernorm"),
        _stacked(config.num_layers, gate_up),
        matrices("mlp.down_proj"),
    )


def _stacked(count: int, part: Callable[[int], Array]) -> Array:
    """`part(0)` to `part(count - 1)` in one array, one of them at a time in memory besides."""
    first = part(0)
    stack = np.empty((count, *first.shape), first.dtype)
    stack[0] = first
    for i in range(1, count):
        stack[i] = part(i)
    return stack
