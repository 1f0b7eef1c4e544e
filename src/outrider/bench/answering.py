"""Has one arm answer one prompt, and records how."""

from collections.abc import Callable, Sequence

import torch

from outrider.engine.drafting.registry import build_drafter
from outrider.engine.loop import StepLoop
from outrider.engine.models.base import Rows, TargetModel
from outrider.engine.recorder import StepRecorder
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.sequence import Sequence as RunningSequence
from outrider.engine.verification.registry import build_verifier
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
        self._recorder = StepRecorder()
        self._loops = {
            arm.name: StepLoop(
                model=model,
                drafter=build_drafter(arm),
                verifier=build_verifier("standard"),
                recorder=self._recorder,
                k=arm.num_speculative_tokens,
                stop_ids=stop_ids,
                clock=clock,
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
        """Answers `prompt` from scratch, one request at a time."""
        loop = self._loops[arm.name]
        sequence = RunningSequence(
            f"{arm.name}/{prompt.prompt_id}/{repeat}",
            prompt.token_ids,
            max_tokens=prompt.max_tokens,
            sampling=Sampling.seeded(sampling),
        )
        prefill_s = loop.prefill(sequence)
        while (reason := loop.finished(sequence)) is None:
            loop.step([sequence])
        return RequestRecord(
            arm=arm.name,
            prompt_id=prompt.prompt_id,
            repeat=repeat,
            phase=phase,
            prompt_tokens=len(prompt.token_ids),
            output_token_ids=tuple(sequence.output_token_ids.tolist()),
            finish_reason=reason,
            prefill_s=prefill_s,
            steps=self._recorder.take(sequence),
        )

    def best_two(self, token_ids: Sequence[int]) -> tuple[tuple[int, int], float]:
        """The target's two best next tokens after `token_ids`, and the gap between their logits."""
        count = len(token_ids)
        logits = self.model.forward(Rows(token_ids, range(count), [0] * count, [count - 1]))
        values, tokens = torch.topk(logits[0], 2)
        return (int(tokens[0]), int(tokens[1])), float(values[0] - values[1])
