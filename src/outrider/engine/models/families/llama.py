"""Llama and what is built like it: Llama 2 and 3, SmolLM 2, Mistral with its sliding window."""

from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.families.decoder import layer_windows, read_decoder
from outrider.engine.models.families.family import Family
from outrider.engine.models.families.settings import Settings

MISTRAL_WINDOW = 4096
"""Of a Mistral config that does not mention it; null is none."""


def _read(config: Settings) -> DecoderConfig:
    window = config.stated.get("sliding_window", MISTRAL_WINDOW)
    if config.get("model_type") != "mistral" or window is None:
        return read_decoder(config, "llama")
    windowed = Settings({**config.stated, "sliding_window": window, "layer_types": None})
    every_layer = [True] * config.size("num_hidden_layers")
    return read_decoder(config, "llama", windows=layer_windows(windowed, every_layer))


LLAMA = Family(
    name="llama",
    model_types=("llama", "mistral"),
    read=_read,
    renamed={"mlp_norm": "post_attention_layernorm"},
    interleaved=True,
)
