"""Random arrivals, cancellations, lengths, drafts and sampling settings, and no block lost."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.engine.drafting.own import MostlyRight, drafter_of, free
from tests.engine.loops import VOCABULARY, RememberingModel, ScriptedDrafter, engine_of, request

from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.sampling import DraftSampleMethod
from outrider.engine.models.base import BLOCK_TOKENS as BLOCK
from outrider.engine.sampling import SamplingParameters
from outrider.engine.scheduling.limits import Limits
from outrider.engine.sequence import Sequence
from outrider.errors import InvalidSetting
from outrider.records.request import FinishReason

NUM_BLOCKS = 24
STOP = 5


@dataclass
class Traffic:
    """Makes requests, and keeps account of what became of each."""

    random: np.random.Generator
    made: dict[str, Sequence] = field(default_factory=dict)
    ended: dict[str, FinishReason | None] = field(default_factory=dict)
    refused: int = 0

    def request(self) -> Sequence:
        random = self.random
        beginning = [int(random.integers(3))] * int(random.integers(0, 3 * BLOCK))
        prompt = beginning + random.integers(0, VOCABULARY, random.integers(1, BLOCK)).tolist()
        temperature = float(random.choice([0.0, 0.0, 0.7, 1.5]))
        parameters = SamplingParameters(
            temperature,
            int(random.integers(2**32)),
            top_k=int(random.choice([0, 3])),
            top_p=float(random.choice([1.0, 0.7])),
            repetition_penalty=float(random.choice([1.0, 1.0, 1.2])),
            bad_words_token_ids=((7,), (8, 9)) if random.random() < 0.3 else (),
            min_tokens=int(random.choice([0, 3])),
            logprobs=int(random.integers(3)) if random.random() < 0.2 else None,
            prompt_logprobs=0 if random.random() < 0.1 else None,
        )
        # A few can never fit.
        most = int(random.integers(3, 3 * BLOCK)) if random.random() < 0.97 else NUM_BLOCKS * BLOCK
        return request(
            prompt,
            most,
            f"r{len(self.made) + self.refused}",
            stop_ids=[STOP],
            parameters=parameters,
        )

    def drafted(self, sequence: Sequence) -> Iterator[int]:
        """Now and then right, mostly random, and sometimes nonsense."""
        if self.random.random() < 0.002:
            yield VOCABULARY + 1
        right = RememberingModel.answer(sequence.token_ids.tolist(), 6)
        for token in right[: self.random.integers(7)]:
            yield token if self.random.random() < 0.8 else int(self.random.integers(VOCABULARY))


def soak(
    seed: int,
    *,
    steps: int = 2**62,
    seconds: float = float("inf"),
    drafter: Drafter | None = None,
) -> Traffic:
    random = np.random.default_rng(seed)
    traffic = Traffic(random)
    engine, recorder = engine_of(
        RememberingModel(NUM_BLOCKS),
        drafter or ScriptedDrafter(traffic.drafted),
        6,
        limits=Limits(8, 100),
        prefix_caching=bool(seed % 2),
    )
    end_s = time.monotonic() + seconds
    arriving = True
    while arriving or engine.busy:
        arriving = steps > 0 and time.monotonic() < end_s
        steps -= 1
        for _ in range(random.poisson(0.15 if arriving else 0.0)):
            sequence = traffic.request()
            try:
                engine.add(sequence)
            except InvalidSetting:
                traffic.refused += 1
            else:
                traffic.made[sequence.request_id] = sequence
        if random.random() < 0.02 and (running := traffic.made.keys() - traffic.ended.keys()):
            gone = sorted(running)[int(random.integers(len(running)))]
            engine.cancel(gone)
            recorder.take(traffic.made[gone])
            traffic.ended[gone] = None
        for update in engine.step():
            name = update.sequence.request_id
            assert name not in traffic.ended, "news of a request that has ended"
            if update.finish_reason is not None:
                traffic.ended[name] = update.finish_reason
                recorder.take(update.sequence)
    pool = engine.scheduler.cache.pool
    assert pool.free_blocks == NUM_BLOCKS
    assert not engine.scheduler.running
    assert not engine.scheduler.waiting
    assert traffic.ended.keys() == traffic.made.keys()
    return traffic


def assert_ended_well(traffic: Traffic) -> None:
    for name, reason in traffic.ended.items():
        sequence = traffic.made[name]
        output = sequence.output_token_ids.tolist()
        parameters = sequence.sampling.parameters
        if reason is FinishReason.LENGTH:
            assert sequence.room_tokens == 0
        if parameters.prompt_logprobs is not None and output:
            told = sum(len(each.chosen) for each in sequence.prompt_logprobs)
            assert told == sequence.prompt_tokens - 1
        if reason is FinishReason.STOP:
            assert output[-1] == STOP
            assert len(output) > parameters.min_tokens
        assert STOP not in output[parameters.min_tokens : -1]
        plain = (
            parameters.repetition_penalty,
            parameters.bad_words_token_ids,
            parameters.min_tokens,
        )
        if parameters.greedy and plain == (1.0, (), 0):
            prompt = sequence.token_ids[: sequence.prompt_tokens].tolist()
            assert output == RememberingModel.answer(prompt, len(output))


@pytest.mark.parametrize("seed", range(4))
def test_after_a_while_of_mixed_traffic_every_request_is_accounted_for(seed: int) -> None:
    traffic = soak(seed, steps=600)
    assert_ended_well(traffic)
    assert len(traffic.made) > 50
    assert {FinishReason.LENGTH, FinishReason.STOP, None} <= set(traffic.ended.values())


@pytest.mark.parametrize("draft_blocks", [NUM_BLOCKS, 5])
@pytest.mark.parametrize("method", ["greedy", "probabilistic"])
def test_so_it_is_with_a_draft_model_which_holds_nothing_in_the_end(
    method: DraftSampleMethod, draft_blocks: int
) -> None:
    for seed in range(2):
        drafter = drafter_of(
            MostlyRight(draft_blocks), method, max_rows=50, prefix_caching=bool(seed)
        )
        traffic = soak(seed, steps=600, drafter=drafter)
        assert_ended_well(traffic)
        assert None in traffic.ended.values()
        assert free(drafter)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_after_ten_minutes_of_mixed_traffic_every_request_is_accounted_for() -> None:
    seconds = float(os.environ.get("OUTRIDER_SOAK_S", "600"))
    traffic = soak(2026, seconds=seconds)
    assert_ended_well(traffic)
    assert traffic.refused > 0
    assert set(traffic.ended.values()) == {*FinishReason, None}
