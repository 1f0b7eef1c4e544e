"""What a family of models brings: how its config reads and what its checkpoints call weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.families.settings import Settings


@dataclass(frozen=True, slots=True)
class Family:
    """One entry of the registry; `name` is also the GGUF architecture."""

    name: str
    model_types: tuple[str, ...]
    """What `config.json` calls it."""
    read: Callable[[Settings], DecoderConfig]
    """The shape that a config describes; UnsupportedModel for what the engine does not compute."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """From the engine's name of a layer's norm to that in a safetensors checkpoint."""
    norm_offset: float = 0.0
    """What a safetensors checkpoint's norm weights lack."""
    interleaved: bool = False
    """Whether GGUF holds the rotary pairs of q and k as neighbours, not as halves of a head."""
