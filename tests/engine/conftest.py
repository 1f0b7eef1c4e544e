"""Small random models on disk, whose answers transformers can check."""

from collections.abc import Callable, Iterator
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.models.tiny import save_tiny

from outrider.engine.models.store import cache_directory, locate_model
from outrider.errors import ModelUnavailable


@pytest.fixture(scope="module", autouse=True)
def torch_threads() -> Iterator[None]:
    """Tiny operators gain nothing from more; undoes what loading a backend sets."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Saves a tiny model as `save_tiny` does and returns its folder.

    It is the same one for the same arguments, by default a Llama.
    """
    saved: dict[str, Path] = {}

    def save(**settings: Any) -> Path:
        key = repr(sorted(settings.items()))
        if key not in saved:
            folder = tmp_path_factory.mktemp("tiny")
            save_tiny(folder, **settings)
            saved[key] = folder
        return saved[key]

    return save


@pytest.fixture(scope="session")
def reference() -> Callable[..., torch.Tensor]:
    """Logits [T, V] of a folder's model after each of T tokens, as transformers computes them.

    Where `cached` is given, keys and values are rounded to that type.
    """
    from transformers import AutoModelForCausalLM, DynamicCache  # noqa: PLC0415  takes seconds

    class RoundingCache(DynamicCache):  # type: ignore[misc]
        def __init__(self, cached: torch.dtype) -> None:
            super().__init__()
            self.cached = cached

        def update(self, keys: Any, values: Any, layer: int, *args: Any, **how: Any) -> Any:
            rounded = (each.to(self.cached).to(each.dtype) for each in (keys, values))
            return super().update(*rounded, layer, *args, **how)

    @cache
    def load(folder: Path, dtype: torch.dtype) -> Any:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)

    @torch.inference_mode()
    def logits(
        folder: Path,
        token_ids: list[int],
        dtype: torch.dtype = torch.float32,
        cached: torch.dtype | None = None,
    ) -> torch.Tensor:
        model, tokens = load(folder, dtype), torch.tensor([token_ids])
        # The name until transformers 5.10 or so, and the one since.
        named = signature(model.forward).parameters
        name = "cache" if "cache" in named else "past_key_values"
        held = {} if cached is None else {name: RoundingCache(cached)}
        result: torch.Tensor = model(tokens, **held).logits[0].float()
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
