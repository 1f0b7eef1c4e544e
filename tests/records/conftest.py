import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Protocol

import pytest
from pydantic import TypeAdapter

from outrider.records.arm import BASELINE, Arm
from outrider.records.environment import Environment, ModelIdentity
from outrider.records.evidence import Evidence
from outrider.records.prompt import PromptRecord
from outrider.records.request import FinishReason, Phase, RequestRecord, StepRecord
from outrider.records.run import RunSettings


@pytest.fixture
def settings() -> RunSettings:
    return RunSettings(
        model="smollm2-135m",
        workload="four-kinds",
        workload_sha256="ab" * 32,
        arms=(BASELINE, Arm("ngram-4", "ngram", 4, 2, 5, "recent")),
        repeats=2,
        seed=7,
        temperature=0.0,
        dtype=None,
        threads=None,
        max_tokens=None,
        smoke=True,
    )


@pytest.fixture
def environment() -> Environment:
    return Environment(
        started_at=datetime(2026, 3, 1, 12, 30, 15, 250000, tzinfo=UTC),
        backend="oneDNN",
        threads=2,
        model=ModelIdentity("smollm2-135m", "wheel", "cd" * 32, 134_515_008, "bfloat16", None),
        os="Linux",
        python="3.11.7",
        versions={"torch": "2.13.0", "outrider": None},
        cpu="Xeon",
        cpu_features=("avx2", "avx512_bf16"),
        physical_cores=None,
        logical_cores=2,
        memory_bytes=8 << 30,
        gpus=(),
    )


@pytest.fixture
def prompts() -> tuple[PromptRecord, ...]:
    return (
        PromptRecord("copy-1", "copy", (5, 6, 7), 96, '[{"role": "user", "content": "Copy ä"}]'),
        PromptRecord("chat-1", "chat", (8,), 32, "[]"),
    )


class MakeRequest(Protocol):
    def __call__(
        self, arm: str, prompt_id: str, repeat: int, *, steps: int = 3, phase: Phase = ...
    ) -> RequestRecord: ...


@pytest.fixture
def make_request() -> MakeRequest:
    """Step i drafts 4, accepts i % 5 and takes i + 0.5 milliseconds."""

    def make(
        arm: str, prompt_id: str, repeat: int, *, steps: int = 3, phase: Phase = Phase.MEASURED
    ) -> RequestRecord:
        taken = tuple(
            StepRecord(4, i % 5, i % 5 + 1, 0.0001, 0.0002, i * 1e-3 + 0.0005) for i in range(steps)
        )
        tokens = 1 + sum(step.emitted for step in taken)
        return RequestRecord(
            arm, prompt_id, repeat, phase, 3, tuple(range(tokens)), FinishReason.STOP, 0.02, taken
        )

    return make


CHILD = """
import sys
from pathlib import Path
from pydantic import TypeAdapter
from outrider.records.evidence import Evidence
from outrider.records.evidence_writer import EvidenceWriter

path, plan, limit_bytes = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
run = TypeAdapter(Evidence).validate_json(plan.read_bytes())
if limit_bytes:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
with EvidenceWriter.create(path, run.settings, run.environments[0], run.prompts) as writer:
    for request in run.requests:
        writer.record(request)
        print("recorded", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def plan(
    settings: RunSettings,
    environment: Environment,
    prompts: tuple[PromptRecord, ...],
    make_request: MakeRequest,
) -> Evidence:
    """A run of many requests, each with 100 steps."""
    first = make_request("ngram-4", "copy-1", 0, steps=100)
    requests = tuple(replace(first, repeat=repeat) for repeat in range(300))
    return Evidence(settings, (environment,), prompts, requests, (0,) * len(requests), ())


StartRun = Callable[..., Popen[str]]


@pytest.fixture
def start_run(tmp_path: Path) -> Iterator[StartRun]:
    """Another process that writes a run, one line for every recorded request."""
    started = []

    def start(path: Path, plan: Evidence, *, limit_bytes: int = 0) -> Popen[str]:
        plan_file = tmp_path / "plan.json"
        plan_file.write_bytes(TypeAdapter(Evidence).dump_json(plan))
        child = Popen(
            [sys.executable, "-c", CHILD, path, plan_file, str(limit_bytes)],
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            text=True,
        )
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()
