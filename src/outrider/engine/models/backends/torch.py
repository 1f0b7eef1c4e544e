"""PyTorch's own operators, on a GPU where there is one."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

import psutil
import torch

from outrider.engine.models.base import TargetModel
from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.eager import EagerDecoder
from outrider.engine.models.graphs import CudaGraphs
from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.source import WeightSource

TORCH_DTYPES: Mapping[str, torch.dtype] = MappingProxyType(
    {"bfloat16": torch.bfloat16, "float32": torch.float32}
)


class TorchBackend:
    """`EagerDecoder`: the simple path, on any device, that the kernels are compared with.

    On a GPU it runs batches of few rows for each sequence as CUDA graphs, unless told not to.
    """

    @property
    def dtypes(self) -> Collection[str]:
        """See `Backend.dtypes`."""
        return TORCH_DTYPES.keys()

    def fastest_dtype(self) -> str:
        """bfloat16 where the device computes in it."""
        native = torch.cuda.is_available() or torch.cpu._is_avx512_bf16_supported()  # noqa: SLF001
        return "bfloat16" if native else "float32"

    def free_bytes(self) -> int:
        """See `Backend.free_bytes`: the GPU's where there is one."""
        if torch.cuda.is_available():
            return torch.cuda.mem_get_info()[0]
        return psutil.virtual_memory().available

    def weight_bytes(self, config: DecoderConfig, dtype: str) -> int:
        """See `Backend.weight_bytes`."""
        return config.parameters * TORCH_DTYPES[dtype].itemsize

    def kv_bytes_per_token(self, config: DecoderConfig, dtype: str) -> int:
        """See `Backend.kv_bytes_per_token`."""
        return EagerDecoder.kv_bytes_per_token(config, TORCH_DTYPES[dtype])

    def load(self, source: WeightSource, settings: ModelSettings, dtype: str) -> TargetModel:
        """See `Backend.load`."""
        torch.set_num_threads(settings.threads)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        graphs = device.type == "cuda" and not settings.enforce_eager
        return EagerDecoder(
            source,
            dtype=TORCH_DTYPES[dtype],
            num_blocks=settings.num_blocks,
            max_length=settings.max_length,
            device=device,
            runner=CudaGraphs(device) if graphs else None,
        )
