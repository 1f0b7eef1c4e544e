"""Small random models on disk, whose answers transformers can check."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from outrider.engine.models.store import cache_directory, locate_model
from outrider.errors import ModelUnavailable

TINY = {
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
}


@pytest.fixture(scope="module", autouse=True)
def torch_threads() -> Iterator[None]:
    """Tiny operators gain nothing from more; undoes what loading a backend sets."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Saves a tiny Llama and returns its folder, the same one for the same arguments.

    Keywords change the config. Logits of its random weights spread over several units. `rounded`
    rounds the matrices, though not the norms, to bfloat16; `shard_size` splits the file.
    """
    from transformers import LlamaConfig, LlamaForCausalLM  # noqa: PLC0415  takes seconds

    @cache
    def save(*, rounded: bool = False, shard_size: str = "1GB", **changes: Any) -> Path:
        generator = torch.Generator().manual_seed(20)
        model = LlamaForCausalLM(LlamaConfig(**TINY | changes))
        for weight in model.parameters():
            if weight.dim() == 1:
                random = 0.5 + torch.rand(weight.shape, generator=generator)
            else:
                random = torch.randn(weight.shape, generator=generator)
                random *= 1.5 * weight.shape[1] ** -0.5
                random = random.bfloat16().float() if rounded else random
            weight.data = random
        folder = tmp_path_factory.mktemp("llama")
        model.save_pretrained(folder, max_shard_size=shard_size)
        return folder

    return save


@pytest.fixture(scope="session")
def reference() -> Callable[..., torch.Tensor]:
    """Logits [T, V] of a folder's model after each of T tokens, as transformers computes them."""
    from transformers import LlamaForCausalLM  # noqa: PLC0415  takes seconds

    @cache
    def load(folder: Path, dtype: torch.dtype) -> Any:
        return LlamaForCausalLM.from_pretrained(folder, dtype=dtype)

    @torch.inference_mode()
    def logits(
        folder: Path, token_ids: list[int], dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        result: torch.Tensor = load(folder, dtype)(torch.tensor([token_ids])).logits[0].float()
        return result

    return logits


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The GGUF file of the real model, from the user's cache or fetched into it."""
    try:
        files = locate_model("smollm2-135m", cache_dir=cache_directory(), report=print)
    except ModelUnavailable as error:
        pytest.skip(str(error))
    return files.path
