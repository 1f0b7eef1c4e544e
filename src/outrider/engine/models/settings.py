"""What a user asks of the engine that computes a target."""

from dataclasses import dataclass, replace

from outrider.engine.models.base import blocks_for


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How to run a target: "auto" takes the fastest backend and type that this machine has.

    Requests may be `max_length` tokens long; the cache has `num_blocks` blocks for all of them.
    `enforce_eager` starts each operator by itself where CUDA graphs would start them together.
    """

    backend: str = "auto"
    dtype: str = "auto"
    threads: int = 1
    num_blocks: int = 32
    max_length: int = 2048
    enforce_eager: bool = False

    def with_room(self, max_length: int, sequences: int = 1) -> "ModelSettings":
        """The same settings with room for so many requests of `max_length` tokens."""
        blocks = sequences * blocks_for(max_length)
        return replace(self, num_blocks=blocks, max_length=max_length)
