"""A tiny model with everything that a real one has."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import torch

START, END = "<|start|>", "<|end|>"

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "<|start|>{{ message.role }}: {{ message.content }}<|end|>"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant: {% endif %}"
)

CONFIG = {
    "model_type": "llama",
    "vocab_size": 256 + 2,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
}


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Llama of random weights, with a tokenizer and a chat template; do not write.

    A token is a byte, the end of a message (256) and so of an answer, or the start of one (257).
    """
    # Imported here and below, because it takes seconds that most tests can do without.
    from safetensors.torch import save_file  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("models") / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    save_file(_weights(), folder / "model.safetensors")
    _save_tokenizer(folder)
    return folder


def _weights() -> "dict[str, torch.Tensor]":
    import torch  # noqa: PLC0415

    generator = torch.Generator().manual_seed(3)

    def random(outputs: int, depth: int) -> torch.Tensor:
        # Larger weights would answer without a repetition, smaller ones with a single token.
        weight: torch.Tensor = torch.randn(outputs, depth, generator=generator)
        return weight.mul_(1.2 * depth**-0.5)

    weights = {
        "model.embed_tokens.weight": random(258, 64),
        "model.norm.weight": torch.ones(64),
    }
    for layer in range(2):
        parts = {
            "input_layernorm": torch.ones(64),
            "self_attn.q_proj": random(128, 64),
            "self_attn.k_proj": random(64, 64),
            "self_attn.v_proj": random(64, 64),
            "self_attn.o_proj": random(64, 128),
            "post_attention_layernorm": torch.ones(64),
            "mlp.gate_proj": random(64, 64),
            "mlp.up_proj": random(64, 64),
            "mlp.down_proj": random(64, 64),
        }
        weights |= {f"model.layers.{layer}.{name}.weight": part for name, part in parts.items()}
    return weights


def _save_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: token for token, letter in enumerate(letters)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    whole = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, additional_special_tokens=[START]
    )
    whole.chat_template = CHAT_TEMPLATE
    whole.save_pretrained(folder)


@pytest.fixture(scope="session", autouse=True)
def signals_of_a_terminal() -> Iterator[None]:
    """Ctrl-C and hanging up, which what a script starts in the background or by nohup ignores."""
    kept = {signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler)}
    if hasattr(signal, "SIGHUP"):
        kept[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, before in kept.items():
        signal.signal(number, before)
