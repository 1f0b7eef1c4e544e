"""What a way to compute a target is."""

from collections.abc import Collection
from typing import Protocol

from outrider.engine.models.base import TargetModel
from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.source import WeightSource


class Backend(Protocol):
    """Loads targets; every `dtype` that it is given is one of its own."""

    @property
    def dtypes(self) -> Collection[str]:
        """The types of weights that it computes with."""
        ...

    def fastest_dtype(self) -> str:
        """The type to take on this machine where nobody asks for another."""
        ...

    def free_bytes(self) -> int:
        """How much of the memory that weights and cache lie in is free now."""
        ...

    def weight_bytes(self, config: DecoderConfig, dtype: str) -> int:
        """What the weights take in memory."""
        ...

    def kv_bytes_per_token(self, config: DecoderConfig, dtype: str) -> int:
        """What one token's keys and values take in the cache, in all layers together."""
        ...

    def load(self, source: WeightSource, settings: ModelSettings, dtype: str) -> TargetModel:
        """Load the weights of `source` and allocate the cache."""
        ...
