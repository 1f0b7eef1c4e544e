"""Tiny random checkpoints of every family, made by transformers; for the tests of all backends.

`CASES` names them; the fixture `checkpoint` in tests/engine/conftest.py saves each once, and
`reference` answers with what transformers makes of it:

    folder = checkpoint(**CASES["gemma 3"])
    expected = reference(folder, token_ids)  # logits [T, V]
"""

from pathlib import Path
from typing import Any

import torch

SIZES = {
    "hidden_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "intermediate_size": 72,
    "vocab_size": 199,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-4,
    "rope_theta": 5_000.0,
    "eos_token_id": None,
    "bos_token_id": None,
    "pad_token_id": None,
}
"""Of every case, but for what it changes. Windows are shorter than the prompts of the tests."""

_LINEAR = {"rope_type": "linear", "rope_theta": 3_000.0, "factor": 4.0}
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 2_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
_YARN = {
    "rope_type": "yarn",
    "rope_theta": 4_000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
}
_ALTERNATING = ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]
_QWEN_WINDOWS = {"use_sliding_window": True, "sliding_window": 40, "max_window_layers": 1}
_GEMMA3 = {
    "model_type": "gemma3_text",
    "num_hidden_layers": 4,
    "layer_types": _ALTERNATING,
    "sliding_window": 33,
    "query_pre_attn_scalar": 48,
}

CASES: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama, tied": {"tie_word_embeddings": True},
    "llama, linear rope": {"rope_parameters": _LINEAR},
    "llama, llama3 rope": {"rope_parameters": _LLAMA3},
    "llama, yarn": {"rope_parameters": _YARN},
    "mistral": {"model_type": "mistral", "sliding_window": None},
    "mistral, windows": {"model_type": "mistral", "sliding_window": 70},
    # No `head_dim` in its config: the hidden size is shared among the heads.
    "qwen 2": {"model_type": "qwen2", "hidden_size": 256},
    "qwen 2, windows, tied": {
        "model_type": "qwen2",
        "hidden_size": 256,
        "tie_word_embeddings": True,
        **_QWEN_WINDOWS,
    },
    "qwen 3": {"model_type": "qwen3", "rope_parameters": _YARN},
    "qwen 3, windows, tied": {
        "model_type": "qwen3",
        "tie_word_embeddings": True,
        **_QWEN_WINDOWS,
    },
    "gemma 3": _GEMMA3,
    "gemma 3, linear rope": _GEMMA3
    | {
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 500.0},
            "full_attention": _LINEAR,
        }
    },
    "gemma 3, untied": _GEMMA3 | {"tie_word_embeddings": False, "num_key_value_heads": 1},
}


def save_tiny(
    folder: Path,
    *,
    model_type: str = "llama",
    rounded: bool = False,
    shard_size: str = "1GB",
    **changes: Any,
) -> None:
    """Saves a model of `SIZES` with `changes`, whose random logits spread over several units.

    `rounded` rounds the matrices, though not the norms, to bfloat16; `shard_size` splits the file.
    """
    from transformers import AutoConfig, AutoModelForCausalLM  # noqa: PLC0415  takes seconds

    generator = torch.Generator().manual_seed(20)
    sizes = dict(SIZES)
    if model_type == "qwen2":
        del sizes["head_dim"]
    model = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(model_type, **sizes | changes), dtype=torch.float32
    )
    for name, weight in model.named_parameters():
        if weight.dim() == 1:
            random = 0.5 + torch.rand(weight.shape, generator=generator)
            if name.endswith("bias") or model_type.startswith("gemma3"):
                random -= 1  # a bias of either sign; a norm to which Gemma adds 1
        else:
            random = torch.randn(weight.shape, generator=generator)
            random *= 1.5 * weight.shape[1] ** -0.5
            random = random.bfloat16().float() if rounded else random
        weight.data = random
    model.save_pretrained(folder, max_shard_size=shard_size)
