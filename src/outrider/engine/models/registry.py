"""The ways to compute a target, by name, and the choice among them."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import torch

from outrider.engine.models.backends.base import Backend
from outrider.engine.models.backends.fused import FusedBackend
from outrider.engine.models.backends.torch import TorchBackend
from outrider.engine.models.base import BLOCK_TOKENS, TargetModel
from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.source import open_weights
from outrider.errors import InvalidSetting, NotEnoughMemory

BACKENDS: Mapping[str, Backend] = MappingProxyType(
    {"fused": FusedBackend(), "torch": TorchBackend()}
)


def resolve(settings: ModelSettings) -> tuple[str, str]:
    """The backend and type that "auto" stands for here; raises InvalidSetting for unknown names."""
    backend = settings.backend
    if backend == "auto":
        backend = "torch" if torch.cuda.is_available() else "fused"
    _check("--backend", backend, BACKENDS)
    dtype = settings.dtype
    if dtype == "auto":
        dtype = BACKENDS[backend].fastest_dtype()
    _check("--dtype", dtype, BACKENDS[backend].dtypes, f" with --backend {backend}")
    return backend, dtype


def _check(option: str, chosen: str, valid: Iterable[str], where: str = "") -> None:
    if chosen not in valid:
        raise InvalidSetting(
            f"{option} {chosen}", f"auto or one of {', '.join(valid)}{where}", "choose one of them"
        )


def load_model(path: Path, settings: ModelSettings) -> TargetModel:
    """Loads the weights at `path`; raises NotEnoughMemory before it allocates too much."""
    backend, dtype = resolve(settings)
    source = open_weights(path)
    check_memory(source.config, settings, BACKENDS[backend].free_bytes())
    return BACKENDS[backend].load(source, settings, dtype)


def check_memory(config: DecoderConfig, settings: ModelSettings, available_bytes: int) -> None:
    """Raises NotEnoughMemory unless weights, cache and the packing of a part fit."""
    name, dtype = resolve(settings)
    backend = BACKENDS[name]
    weights = backend.weight_bytes(config, dtype)
    cache = settings.num_blocks * BLOCK_TOKENS * backend.kv_bytes_per_token(config, dtype)
    # A matrix is also there as it was read, in up to 4 bytes, and twice while its parts are joined.
    read = 2 * 4 * max(math.prod(config.shape_of(name)) for name in config.weight_names)
    needed = weights + read + cache
    if needed > available_bytes:
        gib = 2**30
        raise NotEnoughMemory(
            f"{available_bytes / gib:.1f} GiB of memory are free",
            f"{needed / gib:.1f} GiB for weights and cache",
            "free some, lower --max-tokens or choose a smaller model",
        )
