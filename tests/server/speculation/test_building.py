import pytest
from tests.engine.loops import CountingModel
from tests.server.speculation.settings import ngram

from outrider.engine.caching.cache import BlockCache
from outrider.engine.drafting.ngram import NgramDrafter
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.engine import Engine
from outrider.engine.loop import StepLoop
from outrider.engine.recorder import StepRecorder
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.scheduling.limits import Limits
from outrider.engine.scheduling.scheduler import Scheduler
from outrider.engine.sequence import Sequence
from outrider.records.request import StepRecord
from outrider.server.speculation.building import SpeculationParts, build
from outrider.server.speculation.resolved import ResolvedSpeculation

LIMITS = Limits(max_num_seqs=2, max_num_batched_tokens=64)
PROMPT = [*range(10), *range(10), 0, 1, 2]


def build_for(
    resolved: ResolvedSpeculation | None, target: CountingModel, limits: Limits = LIMITS
) -> SpeculationParts:
    return build(resolved, target=target, limits=limits, clock=target.clock)


def answer(
    resolved: ResolvedSpeculation | None, requests: int = 1
) -> tuple[list[list[int]], list[StepRecord]]:
    """The outputs of so many requests with `PROMPT`, and the steps of the first."""
    target = CountingModel(forward_s=1.0)
    parts = build_for(resolved, target)
    recorder = StepRecorder()
    loop = StepLoop(
        model=target,
        drafter=parts.drafter,
        verifier=parts.verifier,
        recorder=recorder,
        k=parts.k,
        clock=target.clock,
        k_by_batch_size=parts.k_by_batch_size,
        adaptive=parts.adaptive,
    )
    engine = Engine(loop, Scheduler(BlockCache(target.num_blocks), LIMITS))
    sequences = [
        Sequence(
            f"request {each}",
            PROMPT,
            max_tokens=12,
            sampling=Sampling.seeded(SamplingParameters(temperature=0.0)),
        )
        for each in range(requests)
    ]
    for sequence in sequences:
        engine.add(sequence)
    while engine.busy:
        engine.step()
    outputs = [sequence.output_token_ids.tolist() for sequence in sequences]
    return outputs, recorder.take(sequences[0]).steps


COUNTED = list(range(3, 15))
"""What `CountingModel` answers, known without an engine."""


def test_no_config_is_plain_decoding() -> None:
    parts = build_for(None, CountingModel())
    assert isinstance(parts.drafter, NoDrafter)
    assert (parts.verifier.name, parts.k, parts.adaptive) == ("standard", 0, None)
    outputs, steps = answer(None)
    assert outputs == [COUNTED]
    assert {step.drafted for step in steps} == {0}


def test_the_parts_are_those_that_were_resolved() -> None:
    parts = build_for(ngram(prompt_lookup_min=2, rejection_sample_method="block"), CountingModel())
    assert parts.drafter == NgramDrafter(4, 2, 2, "recent")
    assert (parts.verifier.name, parts.k, parts.adaptive) == ("block", 4, None)


def test_an_engine_built_of_them_drafts_accepts_and_answers_as_without() -> None:
    outputs, steps = answer(ngram(prompt_lookup_min=3))
    assert outputs == [COUNTED]
    assert steps[0].drafted == steps[0].accepted == 4
    assert len(steps) < len(COUNTED) - 1


def test_k_follows_the_number_of_requests() -> None:
    resolved = ngram(
        prompt_lookup_min=3, num_speculative_tokens_per_batch_size=[[1, 1, 2], [2, 2, 0]]
    )
    alone, steps = answer(resolved)
    assert alone == [COUNTED]
    assert max(step.drafted for step in steps) == 2
    together, steps = answer(resolved, requests=2)
    assert together == [COUNTED, COUNTED]
    assert max(step.drafted for step in steps) == 0


def test_adaptive_verification_is_profiled_on_the_target_by_the_clock() -> None:
    resolved = ngram(prompt_lookup_min=3, enable_adaptive_verification=True)
    parts = build_for(resolved, CountingModel(forward_s=0.25))
    assert parts.adaptive is not None
    assert set(parts.adaptive.cost.table.tolist()) == {0.25}
    outputs, _ = answer(resolved)
    assert outputs == [COUNTED]


@pytest.mark.parametrize(
    ("limits", "most_rows"), [(Limits(2, 64), 10), (Limits(64, 64), 64), (Limits(1, 2048), 5)]
)
def test_no_larger_step_is_profiled_than_there_can_be(limits: Limits, most_rows: int) -> None:
    resolved = ngram(enable_adaptive_verification=True)
    parts = build_for(resolved, CountingModel(forward_s=0.25), limits)
    assert parts.adaptive is not None
    assert len(parts.adaptive.cost.table) - 1 == most_rows
