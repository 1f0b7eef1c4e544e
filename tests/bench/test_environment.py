import platform
from datetime import UTC, datetime
from pathlib import Path

import psutil
import torch

from outrider.bench.environment import capture_environment
from outrider.records.environment import Environment, ModelIdentity

STARTED_AT = datetime(2026, 3, 1, tzinfo=UTC)
MODEL = ModelIdentity("smollm2-135m", "wheel", "cd" * 32, 134_515_008, "bfloat16", None)

CPUINFO = """\
processor\t: 0
model name\t: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
flags\t\t: fpu avx avx2 avx512f avx512_bf16 amx_tile avx512_vnni2

processor\t: 1
model name\t: another
"""


def capture(cpuinfo: Path) -> Environment:
    return capture_environment(
        started_at=STARTED_AT, backend="fused", threads=3, model=MODEL, cpuinfo=cpuinfo
    )


def test_the_first_processor_is_described(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(CPUINFO)
    environment = capture(file)
    assert environment.cpu == "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"
    assert environment.cpu_features == ("avx2", "avx512f", "avx512_bf16", "amx_tile")


def test_what_a_platform_does_not_tell_is_unknown(tmp_path: Path) -> None:
    environment = capture(tmp_path / "missing")
    assert environment.cpu in {platform.processor(), platform.machine()}
    assert environment.cpu_features is None


def test_what_was_given_is_kept() -> None:
    environment = capture(Path("/proc/cpuinfo"))
    assert environment.started_at == STARTED_AT
    assert environment.backend == "fused"
    assert environment.threads == 3
    assert environment.model == MODEL


def test_the_machine_is_captured() -> None:
    environment = capture(Path("/proc/cpuinfo"))
    assert environment.memory_bytes == psutil.virtual_memory().total
    assert environment.logical_cores == psutil.cpu_count()
    assert len(environment.gpus) == torch.cuda.device_count()


def test_versions_are_those_that_run() -> None:
    versions = capture(Path("/proc/cpuinfo")).versions
    assert versions["torch"] == torch.__version__
    assert "outrider" in versions
