"""What the configs of all families say alike."""

from collections.abc import Iterable, Mapping
from typing import Any

from outrider.engine.models.config import Activation, DecoderConfig
from outrider.engine.models.families.rope_settings import shared_rope
from outrider.engine.models.families.settings import Settings
from outrider.errors import UnsupportedModel

_ACTIVATIONS: Mapping[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
}

_NOT_COMPUTED = (
    "attention_bias",
    "mlp_bias",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "use_bidirectional_attention",
    "num_experts",
    "num_local_experts",
)
"""Settings of one family or another that would change the result."""


def read_decoder(config: Settings, family: str, **differences: Any) -> DecoderConfig:
    """The shape that `config` describes, with the `differences` of a family from a plain Llama.

    In a plain Llama every layer sees all tokens, and all layers turn queries and keys alike. Raises
    UnsupportedModel for what the engine does not compute.
    """
    _refuse_what_is_not_computed(config)
    heads = config.size("num_attention_heads")
    layers = config.size("num_hidden_layers")
    kv_heads = config.size("num_key_value_heads", heads)
    hidden = config.size("hidden_size")
    head_dim = config.size("head_dim", hidden // heads)
    if heads % kv_heads or head_dim % 2:
        raise UnsupportedModel(
            f"the model has {heads} query and {kv_heads} key/value heads of {head_dim}",
            "query heads in equal groups, of an even size",
            "choose another model or export it again",
        )
    usual: dict[str, Any] = {
        "attention_scale": head_dim**-0.5,
        "windows": (0,) * layers,
        "rope_of_layer": (0,) * layers,
        "ropes": differences.get("ropes") or (shared_rope(config),),
    }
    return DecoderConfig(
        family=family,
        vocab_size=config.size("vocab_size"),
        hidden_size=hidden,
        intermediate_size=config.size("intermediate_size"),
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        rms_norm_eps=config.number("rms_norm_eps"),
        max_positions=config.size("max_position_embeddings"),
        tied_embeddings=bool(config.get("tie_word_embeddings", otherwise=False)),
        activation=_activation(config),
        eos_token_ids=config.ids("eos_token_id"),
        **usual | differences,
    )


def layer_windows(config: Settings, sliding: Iterable[bool]) -> tuple[int, ...]:
    """The window of each layer: in those that slide, which `layer_types` may name, else 0."""
    layers = config.size("num_hidden_layers")
    if (types := config.get("layer_types")) is not None:
        slides = {"full_attention": False, "sliding_attention": True}
        if not isinstance(types, list) or len(types) != layers or not set(types) <= slides.keys():
            raise config.wrong("layer_types", f"{' or '.join(slides)} for each of {layers} layers")
        sliding = [slides[each] for each in types]
    return tuple(config.size("sliding_window") if each else 0 for each in sliding)


def _activation(config: Settings) -> Activation:
    name = "hidden_activation" if config.get("hidden_activation") else "hidden_act"
    activation = _ACTIVATIONS.get(str(config.get(name, "silu")))
    if activation is None:
        raise config.wrong(name, f"one of {', '.join(_ACTIVATIONS)}")
    return activation


def _refuse_what_is_not_computed(config: Settings) -> None:
    for name in _NOT_COMPUTED:
        if config.get(name):
            raise config.wrong(name, "none")
    if method := config.part("quantization_config").stated:
        raise UnsupportedModel(
            f"the model's weights are quantized by {method.get('quant_method', 'unknown means')}",
            "plain safetensors, or GGUF",
            "choose the model in one of these forms",
        )
