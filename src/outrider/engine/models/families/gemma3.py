"""Gemma 3, its text: sliding layers with a rope of their own, four norms, a scaled embedding."""

from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.families.decoder import layer_windows, read_decoder
from outrider.engine.models.families.family import Family
from outrider.engine.models.families.rope_settings import read_rope
from outrider.engine.models.families.settings import Settings

_USUAL = {
    "vocab_size": 262_208,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "max_position_embeddings": 131_072,
    "rms_norm_eps": 1e-6,
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
    "sliding_window_pattern": 6,
    "tie_word_embeddings": True,
    "eos_token_id": 1,
    "rope_theta": 1_000_000.0,
    "rope_local_base_freq": 10_000.0,
}
"""What Google's configs leave out, as `Gemma3TextConfig` of transformers fills it in."""


def _read(given: Settings) -> DecoderConfig:
    config = Settings(_USUAL | given.stated | given.part("text_config").stated)
    layers, period = config.size("num_hidden_layers"), config.size("sliding_window_pattern")
    windows = layer_windows(config, [(layer + 1) % period != 0 for layer in range(layers)])
    full, sliding = _rope_sections(config)
    return read_decoder(
        config,
        "gemma3",
        qk_norm=True,
        post_norms=True,
        embedding_scale=config.size("hidden_size") ** 0.5,
        attention_scale=config.number("query_pre_attn_scalar") ** -0.5,
        windows=windows,
        ropes=(
            read_rope(full, config, config.number("rope_theta")),
            read_rope(sliding, config, config.number("rope_local_base_freq")),
        ),
        rope_of_layer=tuple(1 if window else 0 for window in windows),
    )


def _rope_sections(config: Settings) -> tuple[Settings, Settings]:
    """What the config says of the ropes of full and of sliding layers; only the first is scaled."""
    newer = config.part("rope_parameters")
    for name in newer.stated:
        if name not in ("full_attention", "sliding_attention"):
            raise newer.wrong(name, "settings for full_attention and for sliding_attention")
    full = newer.part("full_attention").stated | config.part("rope_scaling").stated
    return Settings(full, "the model's rope_scaling's"), newer.part("sliding_attention")


GEMMA3 = Family(
    name="gemma3",
    model_types=("gemma3_text", "gemma3"),
    read=_read,
    renamed={
        "attention_output_norm": "post_attention_layernorm",
        "mlp_norm": "pre_feedforward_layernorm",
        "mlp_output_norm": "post_feedforward_layernorm",
    },
    norm_offset=1.0,
)
