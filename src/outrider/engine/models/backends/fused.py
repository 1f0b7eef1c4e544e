"""The compiled CPU kernels."""

from collections.abc import Collection

import psutil
import torch

from outrider.engine.models.base import TargetModel
from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.fused import FusedDecoder
from outrider.engine.models.packing import PACKINGS
from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.source import WeightSource


class FusedBackend:
    """`FusedDecoder` on all threads of the settings."""

    @property
    def dtypes(self) -> Collection[str]:
        """See `Backend.dtypes`."""
        return PACKINGS.keys()

    def fastest_dtype(self) -> str:
        """The fastest that keeps what the checkpoint says: kernels widen bfloat16 on any CPU."""
        return "bfloat16"

    def free_bytes(self) -> int:
        """See `Backend.free_bytes`."""
        return psutil.virtual_memory().available

    def weight_bytes(self, config: DecoderConfig, dtype: str) -> int:
        """See `Backend.weight_bytes`."""
        return round(PACKINGS[dtype].weight_bytes(config))

    def kv_bytes_per_token(self, config: DecoderConfig, dtype: str) -> int:
        """See `Backend.kv_bytes_per_token`."""
        return FusedDecoder.kv_bytes_per_token(config, PACKINGS[dtype])

    def load(self, source: WeightSource, settings: ModelSettings, dtype: str) -> TargetModel:
        """See `Backend.load`."""
        # torch has only small operators left to run, and its idle threads would spin beside ours.
        torch.set_num_threads(1)
        return FusedDecoder(
            source,
            packing=PACKINGS[dtype],
            num_blocks=settings.num_blocks,
            max_length=settings.max_length,
            threads=settings.threads,
        )
