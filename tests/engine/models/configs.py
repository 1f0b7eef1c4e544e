"""Configs of decoders of which only a few fields matter to a test."""

from typing import Any

from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.rope import Rope


def config_of(**fields: Any) -> DecoderConfig:
    """A decoder of one layer and sizes of 1 but for `fields`; no layer has a window."""
    layers = fields.get("num_layers", 1)
    usual: dict[str, Any] = {
        "family": "none",
        "vocab_size": 1,
        "hidden_size": 1,
        "intermediate_size": 1,
        "num_layers": 1,
        "num_heads": 1,
        "num_kv_heads": 1,
        "head_dim": 1,
        "rms_norm_eps": 1e-5,
        "max_positions": 1_000,
        "tied_embeddings": True,
        "attention_scale": 1.0,
        "windows": (0,) * layers,
        "ropes": (Rope(10_000.0),),
        "rope_of_layer": (0,) * layers,
    }
    return DecoderConfig(**usual | fields)
