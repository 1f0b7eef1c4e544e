"""Where weights come from: one protocol, one file for each format, chosen by what the path is."""

from pathlib import Path
from typing import Protocol

import torch

from outrider.engine.models.config import DecoderConfig
from outrider.errors import CorruptFile, UnsupportedModel


class WeightSource(Protocol):
    """Weights under `DecoderConfig.weight_names`, one at a time so that memory stays low."""

    @property
    def config(self) -> DecoderConfig:
        """The decoder's shape."""
        ...

    def tensor(self, name: str) -> torch.Tensor:
        """The weight called `name`, ready to multiply: dequantized, rotary pairs as halves of a
        head, norms without offset. CorruptFile where it is missing or misshapen.
        """
        ...


def checked(weight: torch.Tensor, name: str, config: DecoderConfig, path: Path) -> torch.Tensor:
    """`weight`, which `path` holds as `name`; CorruptFile unless its shape is that of `config`."""
    expected = config.shape_of(name)
    if weight.shape != expected:
        raise CorruptFile(
            f"{name} in {path} is {list(weight.shape)}",
            f"{list(expected)}, as its config says",
            "download it again",
        )
    return weight


def open_weights(path: Path) -> WeightSource:
    """Opens a GGUF file, or a folder with `config.json` and safetensors files."""
    from outrider.engine.models.gguf_source import GgufSource  # noqa: PLC0415
    from outrider.engine.models.safetensors_files import refuse_pickled  # noqa: PLC0415
    from outrider.engine.models.safetensors_source import SafetensorsSource  # noqa: PLC0415

    if path.is_dir():
        return SafetensorsSource(path)
    if path.suffix == ".gguf":
        return GgufSource(path)
    refuse_pickled(path)
    raise UnsupportedModel(
        f"{path} is neither a folder nor a .gguf file",
        "safetensors or GGUF weights",
        "convert the model to one of them",
    )
