"""Settings that would change nothing here, refused rather than ignored."""

from collections.abc import Mapping
from types import MappingProxyType

from outrider.errors import InvalidSetting
from outrider.server.speculation.config import KEYS, SpeculativeConfig
from outrider.server.speculation.explaining import shown
from outrider.server.speculation.methods.base import DraftingMethod

FOR_EVERY_METHOD = frozenset(
    {
        "method",
        "model",
        "num_speculative_tokens",
        "num_speculative_tokens_per_batch_size",
        "draft_tensor_parallel_size",
        "tensor_parallel_size",
        "enable_adaptive_verification",
        "rejection_sample_method",
        "synthetic_acceptance_rates",
        "synthetic_acceptance_length",
        "fly_window_size",
        "fly_entropy_threshold",
        "fly_entropy_top_k",
    }
)

_ELSEWHERE = "vLLM, since this engine has no such choice for a draft model"
_EAGLE = "eagle, eagle3 or mtp"

BELONGS_TO: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "enforce_eager",
                "quantization",
                "moe_backend",
                "attention_backend",
                "kv_cache_dtype",
                "revision",
                "code_revision",
                "draft_load_config",
            ),
            _ELSEWHERE,
        ),
        "max_model_len": "a method that has a draft model",
        "draft_sample_method": "a method that has draft probabilities",
        "use_local_argmax_reduction": "a draft model that is split over several devices",
        "use_heterogeneous_vocab": "draft_model",
        "parallel_drafting": "eagle3 (P-EAGLE) or draft_model (PARD)",
        "index_share_for_mtp_iteration": "mtp",
        "disable_padded_drafter_batch": _EAGLE,
        "disable_eagle_block_drop": _EAGLE,
        "disable_lookahead_block_hashes": _EAGLE,
        "draft_lm_head_quantization": "eagle, eagle3 or mtp that share the target's lm_head",
        "dspark_draft_topk": "dspark",
        "xpress_topc": "dflash with an XPress checkpoint",
        **dict.fromkeys(("prompt_lookup_max", "prompt_lookup_min"), "ngram"),
        **dict.fromkeys((key for key in KEYS if key.startswith("suffix_decoding_")), "suffix"),
    }
)
"""What a key that is not for every method needs in order to mean something."""


def refuse_unused(config: SpeculativeConfig, method: type[DraftingMethod]) -> None:
    """Raise InvalidSetting for the first key away from its default that `method` has no use for."""
    for key, field in SpeculativeConfig.model_fields.items():
        value = getattr(config, key)
        if key in FOR_EVERY_METHOD | method.keys or value == field.default:
            continue
        if key == "attention_backend" and value.lower() == "auto":
            continue
        raise InvalidSetting(
            f"{key} {shown(value)} with method {method.name}",
            f"it only with {BELONGS_TO[key]}",
            "drop it, since it would change nothing",
        )
    if (config.draft_tensor_parallel_size or 1) > 1:
        raise InvalidSetting(
            f"draft_tensor_parallel_size {config.draft_tensor_parallel_size}",
            "1, since this engine runs a model on one device",
            "drop it, or serve with vLLM",
        )
