"""Has one arm answer one prompt, and records how."""

from collections.abc import Callable, Sequence

import torch

from outrider.engine.caching.cache import BlockCache
from outrider.engine.drafting.registry import build_drafter
from outrider.engine.engine import Engine
from outrider.engine.loop import StepLoop
from outrider.engine.models.base import Rows, TargetModel, blocks_for
from outrider.engine.recorder import StepRecorder
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.scheduling.limits import Limits
from outrider.engine.scheduling.scheduler import Scheduler
from outrider.engine.sequence import Sequence as RunningSequence
from outrider.engine.verification.registry import build_verifier
from outrider.errors import RequestFailed
from outrider.records.arm import Arm
from outrider.records.prompt import PromptRecord
from outrider.records.request import Phase, RequestRecord


class Answerer:
    """One target, shared by all arms; each arm has a drafter of its own."""

    def __init__(
        self,
        model: TargetModel,
        arms: Sequence[Arm],
        *,
        stop_ids: frozenset[int],
        clock: Callable[[], float],
    ) -> None:
        self.model = model
        self._stop_ids = stop_ids
        self._recorder = StepRecorder()
        self._engines = {
            arm.name: Engine(
                StepLoop(
                    model=model,
                    drafter=build_drafter(arm),
                    verifier=build_verifier("standard"),
                    recorder=self._recorder,
                    k=arm.num_speculative_tokens,
                    clock=clock,
                ),
                # Every answer starts from scratch: no arm gains by what another has computed.
                Scheduler(BlockCache(model.num_blocks), Limits()),
            )
            for arm in arms
        }

    def answer(
        self,
        arm: Arm,
        prompt: PromptRecord,
        *,
        repeat: int,
        phase: Phase,
        sampling: SamplingParameters,
    ) -> RequestRecord:
        """Answers `prompt` from scratch, one request at a time; RequestFailed where it cannot."""
        engine = self._engines[arm.name]
        sequence = RunningSequence(
            f"{arm.name}/{prompt.prompt_id}/{repeat}",
            prompt.token_ids,
            max_tokens=prompt.max_tokens,
            sampling=Sampling.seeded(sampling, end_token_ids=self._stop_ids),
            end_token_ids=self._stop_ids,
        )
        engine.add(sequence)
        reason = None
        while engine.busy:
            for update in engine.step():
                reason = update.finish_reason
                if update.failure is not None:
                    raise RequestFailed(
                        f"prompt {prompt.prompt_id!r} of arm {arm.name} fails: {update.failure}",
                        "an answer",
                        "check the model's files, or leave out the arm",
                    )
        assert reason is not None, "a request ends with a reason"
        recorded = self._recorder.take(sequence)
        return RequestRecord(
            arm=arm.name,
            prompt_id=prompt.prompt_id,
            repeat=repeat,
            phase=phase,
            prompt_tokens=len(prompt.token_ids),
            output_token_ids=tuple(sequence.output_token_ids.tolist()),
            finish_reason=reason,
            prefill_s=recorded.prefill_s,
            steps=tuple(recorded.steps),
        )

    def best_two(self, token_ids: Sequence[int]) -> tuple[tuple[int, int], float]:
        """The target's two best next tokens after `token_ids`, and the gap between their logits."""
        count = len(token_ids)
        logits = self.model.forward(
            Rows(token_ids, range(count), [0] * count, [range(blocks_for(count))], [count - 1])
        )
        values, tokens = torch.topk(logits[0], 2)
        return (int(tokens[0]), int(tokens[1])), float(values[0] - values[1])
