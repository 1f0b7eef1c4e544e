"""Finds out what a session of a run runs on."""

import platform
from collections.abc import Iterable
from datetime import datetime
from importlib import metadata
from pathlib import Path

import psutil
import torch

from outrider.records.environment import Environment, ModelIdentity

PACKAGES = (
    "outrider",
    "duckdb",
    "gguf",
    "llvmlite",
    "numba",
    "numpy",
    "safetensors",
    "tokenizers",
    "torch",
    "transformers",
)
"""What may change a token or a time."""

CPU_FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_bf16", "amx_int8")
"""What decides which kernels run, as Linux calls it."""


def capture_environment(
    *,
    started_at: datetime,
    backend: str,
    threads: int,
    model: ModelIdentity,
    cpuinfo: Path = Path("/proc/cpuinfo"),
) -> Environment:
    """Describe this process and its machine; `threads` is what the engine computes with."""
    cpu = _first_processor(cpuinfo)
    flags = cpu.get("flags")
    return Environment(
        started_at=started_at,
        backend=backend,
        threads=threads,
        model=model,
        os=platform.platform(),
        python=platform.python_version(),
        versions=_versions(PACKAGES),
        cpu=cpu.get("model name") or platform.processor() or platform.machine(),
        cpu_features=(
            None if flags is None else tuple(name for name in CPU_FEATURES if name in flags.split())
        ),
        physical_cores=psutil.cpu_count(logical=False),
        logical_cores=psutil.cpu_count(),
        memory_bytes=psutil.virtual_memory().total,
        gpus=tuple(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())),
    )


def _versions(packages: Iterable[str]) -> dict[str, str | None]:
    versions: dict[str, str | None] = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return versions


def _first_processor(cpuinfo: Path) -> dict[str, str]:
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:  # no Linux
        return {}
    lines = text.partition("\n\n")[0].splitlines()
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
