"""Qwen 2, 2.5 and 3: biases of q, k and v, later norms of q and k heads in their place."""

from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.families.decoder import layer_windows, read_decoder
from outrider.engine.models.families.family import Family
from outrider.engine.models.families.settings import Settings

_RENAMED = {"mlp_norm": "post_attention_layernorm"}


def _windows(config: Settings) -> tuple[int, ...]:
    """Windows in the layers from `max_window_layers` on, or in those that `layer_types` names."""
    layers = config.size("num_hidden_layers")
    if not config.get("use_sliding_window"):
        return (0,) * layers
    first = config.get("max_window_layers", 28)
    if not isinstance(first, int):
        raise config.wrong("max_window_layers", "a whole number")
    return layer_windows(config, [layer >= first for layer in range(layers)])


def _read_qwen2(config: Settings) -> DecoderConfig:
    # Its q, k and v always have a bias and its output never has, whatever this says.
    stated = Settings({**config.stated, "attention_bias": None})
    return read_decoder(stated, "qwen2", qkv_bias=True, windows=_windows(config))


def _read_qwen3(config: Settings) -> DecoderConfig:
    # A config that leaves it out means 128, not the hidden size shared among the heads.
    stated = Settings({"head_dim": 128, **config.stated})
    return read_decoder(stated, "qwen3", qk_norm=True, windows=_windows(config))


QWEN2 = Family(name="qwen2", model_types=("qwen2",), read=_read_qwen2, renamed=_RENAMED)
QWEN3 = Family(name="qwen3", model_types=("qwen3",), read=_read_qwen3, renamed=_RENAMED)
