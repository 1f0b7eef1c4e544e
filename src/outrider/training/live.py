"""The acceptance of a trained draft model, measured in the engine."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from outrider.acceptance.histogram import AcceptanceHistogram
from outrider.engine.caching.cache import BlockCache
from outrider.engine.drafting.draft_model import ModelDrafter
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.engine import Engine
from outrider.engine.loop import StepLoop
from outrider.engine.models.base import TargetModel
from outrider.engine.recorder import StepRecorder
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.scheduling.limits import Limits
from outrider.engine.scheduling.scheduler import Scheduler
from outrider.engine.sequence import Sequence as RunningSequence
from outrider.engine.verification.registry import build_verifier
from outrider.errors import RequestFailed
from outrider.records.request import StepRecord
from outrider.training.answer import TargetAnswer
from outrider.training.answering import TOGETHER


@dataclass(frozen=True, slots=True)
class LiveAcceptance:
    """What the engine accepted in answering held-out prompts again at temperature 0.

    `by_kind` has the same per kind of prompt. `changed` counts the answers that differ from those
    without a draft; `steps_without_draft` are in no histogram.
    """

    histogram: AcceptanceHistogram
    by_kind: Mapping[str, AcceptanceHistogram]
    answers: int
    changed: int
    steps_without_draft: int


def live_acceptance(
    target: TargetModel,
    draft: TargetModel,
    answers: Sequence[TargetAnswer],
    *,
    k: int,
    stop_ids: frozenset[int],
) -> LiveAcceptance:
    """Answer the prompts of `answers` with greedy drafts of at most `k` tokens.

    `answers` are those of the target alone at temperature 0. RequestFailed where one cannot go on.
    """
    limits = Limits(TOGETHER)
    recorder = StepRecorder()
    loop = StepLoop(
        model=target,
        drafter=ModelDrafter(OwnModel(draft, max_rows=limits.max_num_batched_tokens)),
        verifier=build_verifier("standard"),
        recorder=recorder,
        k=k,
        clock=lambda: 0.0,
    )
    engine = Engine(loop, Scheduler(BlockCache(target.num_blocks), limits))
    plain = {each.answer_id: each for each in answers}
    for each in answers:
        engine.add(_request(each, stop_ids))
    steps: defaultdict[str, list[StepRecord]] = defaultdict(list)
    changed = 0
    while engine.busy:
        for update in engine.step():
            if update.failure is not None:
                raise RequestFailed(
                    f"the prompt {update.sequence.request_id!r} fails: {update.failure}",
                    "an answer",
                    "check the draft model, or train it at a lower --learning-rate",
                )
            if update.finish_reason is None:
                continue
            known = plain[update.sequence.request_id]
            steps[known.kind] += recorder.take(update.sequence).steps
            changed += not np.array_equal(update.sequence.output_token_ids, known.completion)
    everything = [step for some in steps.values() for step in some]
    return LiveAcceptance(
        _histogram(everything, k),
        {kind: _histogram(steps[kind], k) for kind in dict.fromkeys(each.kind for each in answers)},
        len(answers),
        changed,
        sum(step.drafted == 0 for step in everything),
    )


def _request(answer: TargetAnswer, stop_ids: frozenset[int]) -> RunningSequence:
    return RunningSequence(
        answer.answer_id,
        answer.prompt,
        max_tokens=answer.max_tokens,
        sampling=Sampling.seeded(SamplingParameters(), end_token_ids=stop_ids),
        end_token_ids=stop_ids,
    )


def _histogram(steps: Iterable[StepRecord], k: int) -> AcceptanceHistogram:
    drafted = [step for step in steps if step.drafted]
    return AcceptanceHistogram.from_steps(
        np.array([step.accepted_emitted for step in drafted], np.int64),
        np.array([step.drafted for step in drafted], np.int64),
        k,
    )
