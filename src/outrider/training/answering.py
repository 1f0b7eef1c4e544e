"""Has the target answer many prompts at once."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outrider.engine.caching.cache import BlockCache
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.engine import Engine
from outrider.engine.loop import StepLoop
from outrider.engine.models.base import TargetModel
from outrider.engine.recorder import StepRecorder
from outrider.engine.sampling import Sampling
from outrider.engine.sampling.logprobs import Logprobs
from outrider.engine.scheduling.limits import Limits
from outrider.engine.scheduling.scheduler import Scheduler
from outrider.engine.sequence import Sequence
from outrider.engine.verification.registry import build_verifier
from outrider.errors import RequestFailed
from outrider.training.answer import TargetAnswer
from outrider.training.split import WantedAnswer

TOGETHER = 32
"""Requests that run at once; on the `fused` backend no answer depends on it."""


def answers_of(
    target: TargetModel, wanted: Iterable[WantedAnswer], stop_ids: frozenset[int]
) -> Iterator[TargetAnswer]:
    """Yield each answer as soon as it is complete; RequestFailed where one cannot go on."""
    recorder = StepRecorder()
    loop = StepLoop(
        model=target,
        drafter=NoDrafter(),
        verifier=build_verifier("standard"),
        recorder=recorder,
        k=0,
        clock=lambda: 0.0,
    )
    engine = Engine(
        loop, Scheduler(BlockCache(target.num_blocks, prefix_caching=True), Limits(TOGETHER))
    )
    asked = {each.answer_id: each for each in wanted}
    for each in asked.values():
        engine.add(sequence_of(each, stop_ids))
    told: dict[str, list[Logprobs]] = {name: [] for name in asked}
    while engine.busy:
        for update in engine.step():
            name = update.sequence.request_id
            if update.failure is not None:
                raise RequestFailed(
                    f"the answer {name!r} fails: {update.failure}",
                    "an answer",
                    "check the model's files, or leave out the prompt",
                )
            if update.logprobs is not None:
                told[name].append(update.logprobs)
            if update.finish_reason is not None:
                recorder.take(update.sequence)
                yield _answer(asked[name], update.sequence, update.finish_reason, told.pop(name))


def sequence_of(wanted: WantedAnswer, stop_ids: frozenset[int]) -> Sequence:
    """The request of one answer."""
    return Sequence(
        wanted.answer_id,
        wanted.prompt.token_ids,
        max_tokens=wanted.prompt.max_tokens,
        sampling=Sampling.seeded(wanted.sampling, end_token_ids=stop_ids),
        end_token_ids=stop_ids,
    )


def _answer(
    wanted: WantedAnswer, sequence: Sequence, finish_reason: str, told: list[Logprobs]
) -> TargetAnswer:
    completion = sequence.output_token_ids
    none = np.zeros((len(completion), 0))
    return TargetAnswer(
        answer_id=wanted.answer_id,
        prompt_id=wanted.prompt.prompt_id,
        kind=wanted.prompt.kind,
        held_out=wanted.held_out,
        temperature=wanted.sampling.temperature,
        seed=wanted.sampling.seed,
        max_tokens=wanted.prompt.max_tokens,
        finish_reason=str(finish_reason),
        prompt=np.array(wanted.prompt.token_ids, np.int32),
        completion=completion.copy(),
        top_ids=_joined([each.top_ids for each in told], none).astype(np.int32),
        top_logprobs=_joined([each.top for each in told], none).astype(np.float32),
    )


def _joined(parts: list[NDArray[Any]], none: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else none
