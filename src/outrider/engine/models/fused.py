"""The decoder on the compiled CPU kernels."""

import math
from typing import Any

import numpy as np
import torch

from outrider.engine.compiling import for_types_of
from outrider.engine.kernels.arguments import SPAN, Batch, Cache, Shared
from outrider.engine.kernels.attention.base import CacheFormat, most_scratch
from outrider.engine.kernels.decoder import REGIONS_PER_LAYER, forward
from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.likeliest import nothing_seen
from outrider.engine.kernels.memory import aligned_zeros
from outrider.engine.kernels.team import new_counters
from outrider.engine.likeliest import Likeliest, forget, tell
from outrider.engine.models.base import Rows
from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.fused_batch import PASS_ROWS, PassLimits, batches
from outrider.engine.models.kernel_threads import KernelThreads
from outrider.engine.models.packing import (
    Packing,
    kernel_constants,
    pack_ends,
    pack_layers,
    stacked_rope,
)
from outrider.engine.models.source import WeightSource

Array = np.ndarray[Any, np.dtype[Any]]


class FusedDecoder:
    """Weights in any of `PACKINGS`, activations, sums and cache in float32.

    But where products are in tiles: there activations have 16 bits, keys and values are bfloat16.

    Results do not depend on which rows share a pass, so `logit_tolerance` is 0.
    """

    logit_tolerance = 0.0

    def __init__(
        self,
        source: WeightSource,
        *,
        packing: Packing,
        num_blocks: int,
        max_length: int,
        threads: int,
    ) -> None:
        self.config = config = source.config
        self.num_blocks = num_blocks
        self.max_length = max_length
        # The largest matrices first: each is held in float32 for a moment.
        ends = pack_ends(source, packing)
        layers = pack_layers(source, packing)
        self._cache = Cache._make(
            aligned_zeros(shape, packing.cache.stored)
            for shape in _cache_shapes(config, packing.cache, num_blocks)
        )
        self._model = (layers, ends, stacked_rope(config, max_length), self._cache)
        self._constants = kernel_constants(config)
        self._limits = PassLimits(
            vocab_size=config.vocab_size,
            max_length=max_length,
            num_blocks=num_blocks,
            kv_heads=config.num_kv_heads,
            group=config.num_heads // config.num_kv_heads,
            threads=threads,
        )
        heads = config.num_heads + 2 * config.num_kv_heads
        self._shared = Shared(
            residual=_rows(config.hidden_size),
            heads=_rows(_padded(heads * config.head_dim)),
            attended=_rows(config.num_heads * config.head_dim),
            activated=_rows(config.intermediate_size),
            branch=_rows(_padded(config.hidden_size)),
            scratch=np.empty((threads, 0), np.float32),
        )
        self._logits = np.empty((0, ends.head.shape[0] * PANEL), np.float32)
        self._of_tokens: dict[int, torch.Tensor] = {}  # the logits of tokens in it, by row count
        self._threads = threads
        self._forward: Any = None
        self._kernel_threads = KernelThreads(threads - 1)

    @staticmethod
    def kv_bytes_per_token(config: DecoderConfig, packing: Packing) -> int:
        """What one token's keys and values take in the cache, in all layers together."""
        held = packing.cache
        numbers: int = sum(math.prod(shape) for shape in _cache_shapes(config, held, 1))
        return np.dtype(held.stored).itemsize * numbers // SPAN

    def forward(self, rows: Rows) -> torch.Tensor:
        """See `TargetModel.forward`; of logits that are finite it tells the likeliest."""
        count = len(rows.wanted)
        logits, of_tokens = self._room_for_logits(count)
        likeliest = Likeliest(np.empty(count, np.int64), np.empty(count))
        for batch, wanted in batches(rows, self._limits):
            part = Likeliest(likeliest.tokens[wanted], likeliest.log_odds[wanted])
            self._run(batch, logits[wanted], part)
        if any(map(math.isnan, likeliest.log_odds.tolist())):
            forget(of_tokens)
        else:
            tell(of_tokens, likeliest)
        return of_tokens

    def _room_for_logits(self, count: int) -> tuple[Array, torch.Tensor]:
        """Room for `count` rows, the same each time: fresh pages cost a millisecond.

        And what of it is no padding.
        """
        if len(self._logits) < count:
            self._logits = aligned_zeros((count, self._logits.shape[1]), np.float32)
            self._of_tokens.clear()
        logits = self._logits[:count]
        if count not in self._of_tokens:
            self._of_tokens[count] = torch.from_numpy(logits[:, : self.config.vocab_size])
        return logits, self._of_tokens[count]

    def _run(self, batch: Batch, logits: Array, likeliest: Likeliest) -> None:
        """Lets the team of threads run one forward pass; this thread is one of them."""
        count = len(batch.positions)
        scratch = self._scratch(batch)
        shared = Shared._make(array[:count] for array in self._shared)
        arguments: tuple[Any, ...] = (
            new_counters(REGIONS_PER_LAYER * self.config.num_layers + 2, self._threads),
            batch,
            *self._model,
            shared._replace(scratch=scratch),
            self._constants,
            logits,
            nothing_seen(self._threads, len(logits)),
            likeliest,
        )
        if self._forward is None:
            self._forward = for_types_of(forward, (0, *arguments))
        self._kernel_threads.run(self._forward, *arguments)
        self._forward(0, *arguments)

    def _scratch(self, batch: Batch) -> Array:
        """Each thread's room for the largest chunk; kept, and grown where a context asks for it."""
        group, size = self._limits.group, self.config.head_dim
        numbers = most_scratch(batch.chunks, batch.positions, group, size)
        if self._shared.scratch.shape[1] < numbers:
            grown = aligned_zeros((self._threads, _padded(numbers)), np.float32)
            self._shared = self._shared._replace(scratch=grown)
        scratch: Array = self._shared.scratch
        return scratch


def _cache_shapes(config: DecoderConfig, held: CacheFormat, num_blocks: int) -> Cache:
    """The shapes of its keys and values."""
    blocks = (config.num_layers, num_blocks, config.num_kv_heads)
    return Cache(
        keys=(*blocks, *held.key_shape(config.head_dim)),
        values=(*blocks, *held.value_shape(config.head_dim)),
    )


def _padded(count: int) -> int:
    """`count` in whole panels."""
    return count + -count % PANEL


def _rows(width: int) -> Array:
    return aligned_zeros((PASS_ROWS, width), np.float32)
