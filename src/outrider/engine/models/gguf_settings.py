"""A GGUF file's metadata as the Hugging Face config that it was converted from.

So that a family reads its config once, whatever the format. What GGUF leaves to the engine's
knowledge of an architecture is filled in as llama.cpp has it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from outrider.engine.models.rope import yarn_attention_factor
from outrider.errors import CorruptFile, UnsupportedModel

_REQUIRED = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "max_position_embeddings": "context_length",
}
_OPTIONAL = {
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "rope_theta": "rope.freq_base",
    "rope_local_base_freq": "rope.freq_base_swa",
    "num_experts": "expert_count",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
}
_ENDS = ("eos", "eot", "eom")

Field = Callable[..., Any]
"""Reads a key of the architecture, with what it is where the file lacks it."""


def stated_settings(path: str, metadata: Mapping[str, Any], architecture: str) -> dict[str, Any]:
    """All that the metadata says of the model's shape, but for what its tensors show.

    Raises CorruptFile where a size is missing, and UnsupportedModel for what no config could say.
    """

    def field(key: str, otherwise: Any = None) -> Any:
        return metadata.get(f"{architecture}.{key}", otherwise)

    settings: dict[str, Any] = {"model_type": architecture}
    for name, key in _REQUIRED.items():
        settings[name] = field(key)
        if settings[name] is None:
            raise CorruptFile(
                f"{path} lacks {architecture}.{key}", "a complete GGUF file", "download it again"
            )
    settings |= {name: field(key) for name, key in _OPTIONAL.items() if field(key) is not None}
    heads, hidden = settings["num_attention_heads"], settings["hidden_size"]
    if isinstance(heads, int) and heads > 0:
        settings.setdefault("head_dim", hidden // heads)
    for key, expected in (
        ("rope.dimension_count", settings.get("head_dim")),
        ("attention.value_length", settings.get("head_dim")),
        ("attention.scale", None),
        ("attention.causal", True),
    ):
        if field(key, expected) != expected:
            seen = f"{architecture}.{key} = {field(key)!r}"
            raise _unsupported(path, seen, "none" if expected is None else str(expected))
    ends = (metadata.get(f"tokenizer.ggml.{each}_token_id") for each in _ENDS)
    settings["eos_token_id"] = list(dict.fromkeys(int(each) for each in ends if each is not None))
    settings["rope_scaling"] = _rope_scaling(path, field)
    settings |= _windows(path, field, settings)
    if architecture == "gemma3":
        settings["query_pre_attn_scalar"] = _query_scale(settings)
    return settings


def _rope_scaling(path: str, field: Field) -> dict[str, Any] | None:
    kind = field("rope.scaling.type", "none")
    if kind in ("none", "default"):
        older = field("rope.scale_linear", 1.0)
        return None if older == 1 else {"rope_type": "linear", "factor": older}
    section = {"rope_type": kind, "factor": field("rope.scaling.factor")}
    if kind != "yarn" or section["factor"] is None:
        return section
    for key, usual in (("yarn_ext_factor", 1.0), ("yarn_log_multiplier", 0.0)):
        if (value := field(f"rope.scaling.{key}", usual)) != usual:
            raise _unsupported(path, f"rope.scaling.{key} = {value!r}", f"{usual}")
    # llama.cpp multiplies yarn's own factor with these; transformers takes the product.
    factor = yarn_attention_factor(section["factor"])
    factor *= field("rope.scaling.attn_factor", 1.0) * field("rope.scaling.yarn_attn_factor", 1.0)
    return section | {
        "original_max_position_embeddings": field("rope.scaling.original_context_length"),
        "attention_factor": factor,
        "beta_fast": field("rope.scaling.yarn_beta_fast"),
        "beta_slow": field("rope.scaling.yarn_beta_slow"),
    }


def _windows(path: str, field: Field, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Which layers slide: those of a list, or all but every n-th, or every one of a Mistral."""
    family = settings["model_type"]
    window, pattern = (field(f"attention.sliding_window{each}") for each in ("", "_pattern"))
    if not window:
        full = ["full_attention"] * settings["num_hidden_layers"]
        return {"layer_types": full} if family == "gemma3" else {}
    if family == "llama" and pattern is None:
        return {"model_type": "mistral", "sliding_window": window}
    if family != "llama" and isinstance(pattern, list):
        types = ["sliding_attention" if slides else "full_attention" for slides in pattern]
        return {"sliding_window": window, "use_sliding_window": True, "layer_types": types}
    if family == "gemma3":
        return {"sliding_window": window} | (
            {} if pattern is None else {"sliding_window_pattern": pattern}
        )
    raise _unsupported(path, "a sliding window in layers that it does not name", "none")


def _query_scale(settings: Mapping[str, Any]) -> int:
    """Gemma 3's `query_pre_attn_scalar`, which GGUF leaves out: another only in the 27B, of 62."""
    if settings["num_hidden_layers"] == 62:  # noqa: PLR2004
        return int(settings["hidden_size"] // settings["num_attention_heads"])
    return int(settings["head_dim"])


def _unsupported(path: str, seen: str, expected: str) -> UnsupportedModel:
    return UnsupportedModel(f"{path} has {seen}", expected, "choose another model")
