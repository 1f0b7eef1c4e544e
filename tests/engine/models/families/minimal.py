"""The least that a config of each family has to say."""

from typing import Any

from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.families.registry import family_of
from outrider.engine.models.families.settings import Settings

MINIMAL = {
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 2048,
}


def read(model_type: object = "llama", **changes: Any) -> DecoderConfig:
    """What the family of `model_type` makes of `MINIMAL` with `changes`."""
    return family_of(model_type).read(Settings({"model_type": model_type, **MINIMAL, **changes}))
