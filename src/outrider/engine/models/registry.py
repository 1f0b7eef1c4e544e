"""The ways to compute a target, by name, and the choice among them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import psutil
import torch

from outrider.engine.models.base import BLOCK_TOKENS, TargetModel, blocks_for
from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.eager import EagerDecoder
from outrider.engine.models.fused import FusedDecoder
from outrider.engine.models.source import WeightSource, open_weights
from outrider.errors import InvalidSetting, NotEnoughMemory

DTYPES = MappingProxyType({"bfloat16": torch.bfloat16, "float32": torch.float32})


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How to run a target: "auto" takes the fastest backend and type that this machine has.

    Requests may be `max_length` tokens long; the cache has `num_blocks` blocks for all of them.
    """

    backend: str = "auto"
    dtype: str = "auto"
    threads: int = 1
    num_blocks: int = 32
    max_length: int = 2048

    def with_room(self, max_length: int, sequences: int = 1) -> "ModelSettings":
        """The same settings with room for so many requests of `max_length` tokens."""
        blocks = sequences * blocks_for(max_length)
        return replace(self, num_blocks=blocks, max_length=max_length)


def _fused(source: WeightSource, settings: ModelSettings, dtype: torch.dtype) -> TargetModel:
    # torch has only small operators left to run, and its idle threads would spin beside ours.
    torch.set_num_threads(1)
    return FusedDecoder(
        source,
        dtype=dtype,
        num_blocks=settings.num_blocks,
        max_length=settings.max_length,
        threads=settings.threads,
    )


def _eager(source: WeightSource, settings: ModelSettings, dtype: torch.dtype) -> TargetModel:
    torch.set_num_threads(settings.threads)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return EagerDecoder(
        source,
        dtype=dtype,
        num_blocks=settings.num_blocks,
        max_length=settings.max_length,
        device=device,
    )


@dataclass(frozen=True, slots=True)
class Backend:
    """One way to compute a target."""

    load: Callable[[WeightSource, ModelSettings, torch.dtype], TargetModel]
    kv_bytes_per_token: Callable[[DecoderConfig, torch.dtype], int]
    """What one token's keys and values take in the cache, in all layers together."""


BACKENDS: Mapping[str, Backend] = MappingProxyType(
    {
        "fused": Backend(_fused, FusedDecoder.kv_bytes_per_token),
        "torch": Backend(_eager, EagerDecoder.kv_bytes_per_token),
    }
)


def resolve(settings: ModelSettings) -> tuple[str, str]:
    """The backend and type that "auto" stands for here; raises InvalidSetting for unknown names."""
    cuda = torch.cuda.is_available()
    backend = settings.backend
    if backend == "auto":
        backend = "torch" if cuda else "fused"
    dtype = settings.dtype
    if dtype == "auto":
        # The fused kernels widen bfloat16 themselves, so any CPU gains from it.
        native = cuda or bool(torch.cpu._is_avx512_bf16_supported())  # noqa: SLF001
        dtype = "bfloat16" if backend == "fused" or native else "float32"
    for chosen, valid, option in (
        (backend, BACKENDS, "--backend"),
        (dtype, DTYPES, "--dtype"),
    ):
        if chosen not in valid:
            raise InvalidSetting(
                f"{option} {chosen}", f"auto or one of {', '.join(valid)}", "choose one of them"
            )
    return backend, dtype


def load_model(path: Path, settings: ModelSettings) -> TargetModel:
    """Loads the weights at `path`; raises NotEnoughMemory before it allocates too much."""
    backend, dtype = resolve(settings)
    source = open_weights(path)
    check_memory(source.config, settings, psutil.virtual_memory().available)
    return BACKENDS[backend].load(source, settings, DTYPES[dtype])


def check_memory(config: DecoderConfig, settings: ModelSettings, available_bytes: int) -> None:
    """Raises NotEnoughMemory unless weights, cache and the packing of a part fit."""
    backend, name = resolve(settings)
    dtype = DTYPES[name]
    weights = config.parameters * dtype.itemsize
    token_bytes = BACKENDS[backend].kv_bytes_per_token(config, dtype)
    cache = settings.num_blocks * BLOCK_TOKENS * token_bytes
    # Packing holds a large matrix also in float32 for a moment; half of all weights is allowed.
    needed = weights + weights // 2 + cache
    if needed > available_bytes:
        gib = 2**30
        raise NotEnoughMemory(
            f"{available_bytes / gib:.1f} GiB of memory are free",
            f"{needed / gib:.1f} GiB for weights and cache",
            "free some, lower --max-tokens or choose a smaller model",
        )
