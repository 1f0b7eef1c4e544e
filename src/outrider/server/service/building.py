"""From a model's name to an engine that is ready to serve it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from outrider.engine.caching.cache import BlockCache
from outrider.engine.caching.memory import cache_blocks
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.engine import Engine
from outrider.engine.loop import StepLoop
from outrider.engine.models.backends.base import Backend
from outrider.engine.models.base import BLOCK_TOKENS, Rows, TargetModel
from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.registry import BACKENDS, load_model, resolve
from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.source import open_weights
from outrider.engine.models.store import ModelFiles
from outrider.engine.scheduling.limits import Limits
from outrider.engine.scheduling.scheduler import Scheduler
from outrider.errors import InvalidSetting
from outrider.server.metrics.engine_load import EngineLoad
from outrider.server.metrics.serving_metrics import ServingMetrics
from outrider.server.speculation.building import build
from outrider.server.speculation.opened_draft import OpenedDraft
from outrider.server.speculation.resolved import ResolvedSpeculation


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """How to run a model for many; None is what the model or the machine allows."""

    backend: str = "auto"
    dtype: str = "auto"
    threads: int = 1
    max_model_len: int | None = None
    kv_cache_bytes: int | None = None
    prefix_caching: bool = True
    enforce_eager: bool = False
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class BuiltEngine:
    """An engine, the metrics that hear of its steps, and what it was found to hold."""

    engine: Engine
    metrics: ServingMetrics
    cache_bytes: int
    dtype: str
    backend: str

    @property
    def cache_tokens(self) -> int:
        """How many tokens the cache holds, of all requests together."""
        return self.engine.loop.model.num_blocks * BLOCK_TOKENS


def build_engine(
    files: ModelFiles,
    settings: EngineSettings,
    speculation: ResolvedSpeculation | None,
    *,
    draft: OpenedDraft | None = None,
    model_name: str,
    clock: Callable[[], float] = time.perf_counter,
) -> BuiltEngine:
    """Load the weights and make room for requests; metrics call the model `model_name`.

    A `draft` model, if `speculation` needs one, runs as the target does. Of the memory for caches
    each of the two gets what its keys and values need for equally many tokens.
    Raises InvalidSetting for a length that the model does not have, NotEnoughMemory, and what
    reading weights raises.
    """
    config = open_weights(files.path).config
    most = settings.max_model_len or config.max_positions
    if not 1 <= most <= config.max_positions:
        raise InvalidSetting(
            f"--max-model-len {most}",
            f"from 1 to the {config.max_positions} positions of the model",
            "choose a length in that range, or leave it out",
        )
    name, dtype = resolve(ModelSettings(backend=settings.backend, dtype=settings.dtype))
    configs = [config] if draft is None else [config, draft.config]
    blocks, cache_bytes = _cache_room(configs, BACKENDS[name], dtype, settings, most)
    how = ModelSettings(
        backend=settings.backend,
        dtype=settings.dtype,
        threads=settings.threads,
        num_blocks=blocks,
        max_length=most,
        enforce_eager=settings.enforce_eager,
    )
    model = load_model(files.path, how)
    _warm_up(model)
    own = None if draft is None else _load_draft(draft, how, model, settings)
    parts = build(speculation, target=model, own=own, limits=settings.limits, clock=clock)
    cache = BlockCache(model.num_blocks, prefix_caching=settings.prefix_caching)
    scheduler = Scheduler(cache, settings.limits)
    metrics = ServingMetrics(
        model_name=model_name,
        k=parts.k,
        load=lambda: EngineLoad.of(scheduler),
        clock=clock,
        prefix_caching=settings.prefix_caching,
    )
    loop = StepLoop(
        model=model,
        drafter=parts.drafter,
        verifier=parts.verifier,
        recorder=metrics,
        k=parts.k,
        clock=clock,
        k_by_batch_size=parts.k_by_batch_size,
        adaptive=parts.adaptive,
    )
    return BuiltEngine(
        Engine(loop, scheduler),
        metrics,
        cache_bytes,
        dtype,
        name,
    )


def _cache_room(
    configs: Sequence[DecoderConfig],
    backend: Backend,
    dtype: str,
    settings: EngineSettings,
    max_length: int,
) -> tuple[int, int]:
    """How many blocks the cache of each model has, and what all of them take together."""
    bytes_per_token = sum(backend.kv_bytes_per_token(each, dtype) for each in configs)
    weight_bytes = sum(backend.weight_bytes(each, dtype) for each in configs)
    blocks = cache_blocks(
        bytes_per_token,
        free_bytes=max(backend.free_bytes() - weight_bytes, 0),
        memory_bytes=settings.kv_cache_bytes,
        max_length=max_length,
        max_num_seqs=settings.limits.max_num_seqs,
    )
    return blocks, blocks * BLOCK_TOKENS * bytes_per_token


def _load_draft(
    draft: OpenedDraft, how: ModelSettings, target: TargetModel, settings: EngineSettings
) -> OwnModel:
    own = draft.load(
        how,
        target,
        max_rows=settings.limits.max_num_batched_tokens,
        prefix_caching=settings.prefix_caching,
    )
    _warm_up(own.model)
    return own


def _warm_up(model: TargetModel) -> None:
    """Run the model once, since the first time compiles its kernels or loads them."""
    rows = min(2, model.max_length)
    model.forward(Rows([0] * rows, range(rows), [0] * rows, [[0]], range(rows)))
