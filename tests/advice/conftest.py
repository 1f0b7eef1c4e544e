"""Requests made by hand."""

from collections.abc import Callable, Sequence

import pytest

from outrider.records.request import FinishReason, Phase, RequestRecord, StepRecord


@pytest.fixture(scope="session")
def make_request() -> Callable[..., RequestRecord]:
    """Make requests of steps (drafted, accepted, step_s), an eighth of each spent on drafting."""

    def make(
        arm: str,
        prompt_id: str,
        steps: Sequence[tuple[int, int, float]],
        repeat: int = 0,
        phase: Phase = Phase.MEASURED,
    ) -> RequestRecord:
        records = tuple(
            StepRecord(
                drafted=drafted,
                accepted=accepted,
                emitted=accepted + 1,
                draft_s=step_s / 8,
                verify_s=step_s / 2,
                step_s=step_s,
            )
            for drafted, accepted, step_s in steps
        )
        return RequestRecord(
            arm=arm,
            prompt_id=prompt_id,
            repeat=repeat,
            phase=phase,
            prompt_tokens=10,
            output_token_ids=tuple(range(1 + sum(step.emitted for step in records))),
            finish_reason=FinishReason.STOP,
            prefill_s=0.5,
            steps=records,
        )

    return make
