"""What the threads of one pass are given, as the named tuples that numba compiles.

Shapes: R rows, S sequences, W wanted rows, L layers, H hidden size, Q query heads, G key/value
heads, D head size, I intermediate size, B cache blocks. Packed weights are as `panel.pack` makes
them. What a family does not have is an array of size 0 in its last axis, so that one compiled body
runs every family.
"""

from typing import Any, NamedTuple

SPAN = 64
"""Tokens in one block of the cache, whose keys are scored at once."""


class Batch(NamedTuple):
    """The rows of a pass; all arrays int64."""

    token_ids: Any
    """[R]"""
    positions: Any
    """[R], ascending within a sequence, whose rows are adjacent."""
    sequences: Any
    """[R], indices into `tables`."""
    tables: Any
    """[S, blocks]: position p of a sequence is cached in block `tables[sequence, p // SPAN]`."""
    chunks: Any
    """[C + 1]: where rows that attend together begin, each of one sequence, and R."""
    wanted: Any
    """[W], rows whose logits are needed."""


class Layers(NamedTuple):
    """Weights and declared differences of all layers."""

    attention_norm: Any
    """[L, H]"""
    qkv: Any
    """Packed [L, (Q + 2 G) D, H]."""
    qkv_bias: Any
    """[L, (Q + 2 G) D] or [L, 0]."""
    query_norm: Any
    """[L, D] or [L, 0]."""
    key_norm: Any
    """[L, D] or [L, 0]."""
    output: Any
    """Packed [L, H, Q D]."""
    output_norm: Any
    """[L, H] or [L, 0]."""
    mlp_norm: Any
    """[L, H]"""
    gate_up: Any
    """Packed [L, 2 I, H], gate and up each in whole panels."""
    down: Any
    """Packed [L, H, I]."""
    down_norm: Any
    """[L, H] or [L, 0]."""
    window: Any
    """int64 [L]: tokens that a row sees, itself included; 0 for all."""
    rope: Any
    """int64 [L]: which of the rope tables."""


class Ends(NamedTuple):
    """What stands before and after the layers."""

    embedding: Any
    """Packed [V, H]."""
    norm: Any
    """[H]"""
    head: Any
    """Packed [V, H]."""


class Constants(NamedTuple):
    """float32 but for `gelu` and `vocab_size`."""

    epsilon: Any
    attention_scale: Any
    embedding_scale: Any
    gelu: Any
    """Whether the gate's activation is GELU, in its tanh form, and not SiLU."""
    vocab_size: Any


class Rope(NamedTuple):
    """Tables for every kind of layer."""

    cos: Any
    """[kinds, positions, D / 2]"""
    sin: Any
    """[kinds, positions, D / 2]"""


class Cache(NamedTuple):
    """Keys and values of all blocks, in one of the `CACHE_FORMATS`.

    Without L where it is that of one layer.
    """

    keys: Any
    """[L, B, G, and the shape of a head's keys in a block]"""
    values: Any
    """[L, B, G, and the shape of a head's values in a block]"""


class Shared(NamedTuple):
    """Arrays that all threads of a pass work on, float32."""

    residual: Any
    """[R, H]"""
    heads: Any
    """[R, (Q + 2 G) D in whole panels]: queries, keys and values."""
    attended: Any
    """[R, Q D]"""
    activated: Any
    """[R, I]"""
    branch: Any
    """[R, H in whole panels]: what attention or MLP return where that is normed."""
    scratch: Any
    """[threads, numbers]: room for one chunk's scores each."""
