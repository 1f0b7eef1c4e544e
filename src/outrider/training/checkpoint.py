"""The folder in which a draft model is delivered: config, weights and the target's tokenizer."""

import json
from pathlib import Path

import torch
from safetensors.torch import save

from outrider.engine.models.config import DecoderConfig
from outrider.engine.tokenizer import Tokenizer
from outrider.errors import UnwritableOutput
from outrider.training.draft import EPSILON, ROPE_THETA, DraftNetwork

WEIGHTS = "model.safetensors"


def save_checkpoint(
    draft: DraftNetwork, target: DecoderConfig, tokenizer: Tokenizer, folder: Path
) -> int:
    """Write the model in bfloat16, and return the bytes of all files in `folder`.

    Raises UnwritableOutput where the disk refuses.
    """
    shape = draft.shape
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "bfloat16",
        "vocab_size": target.vocab_size,
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.intermediate_size,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "head_dim": shape.hidden_size // shape.heads,
        "max_position_embeddings": target.max_positions,
        "rms_norm_eps": EPSILON,
        "rope_theta": ROPE_THETA,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "eos_token_id": list(target.eos_token_ids) or None,
    }
    weights = {
        name: weight.detach().to("cpu", torch.bfloat16).contiguous()
        for name, weight in draft.state_dict().items()
    }
    try:
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        # written by ourselves: `save_file` lets nobody but its owner read the file
        (folder / WEIGHTS).write_bytes(save(weights, metadata={"format": "pt"}))
        tokenizer.save(folder)
        _without_spaces(folder / "tokenizer.json")
        return sum(file.stat().st_size for file in folder.iterdir())
    except OSError as error:
        raise UnwritableOutput(
            f"{folder} cannot be written ({error.strerror or error})",
            "a writable folder with room on its disk",
            "free some space, and go on with --resume",
        ) from error


def _without_spaces(file: Path) -> None:
    """Store the same JSON in fewer bytes: a third of a large tokenizer is indentation."""
    content = json.loads(file.read_text(encoding="utf-8"))
    smaller = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    file.write_text(smaller, encoding="utf-8")
