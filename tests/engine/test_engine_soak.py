"""Random arrivals, cancellations, lengths, drafts and sampling settings, and no block lost."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engine.drafting.own import MostlyRight, drafter_of, free
from tests.engine.loops import (
    VOCABULARY,
    RememberingModel,
    ScriptedDrafter,
    engine_of,
    finish,
    request,
)

from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.verification import AdaptiveVerification
from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.batch_size_ranges import BatchSizeRanges
from outrider.engine.drafting.ngram import NgramDrafter
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.drafting.sampling import DraftSampleMethod
from outrider.engine.drafting.suffix import SuffixDrafter
from outrider.engine.models.base import BLOCK_TOKENS as BLOCK
from outrider.engine.models.base import TargetModel
from outrider.engine.models.fused import FusedDecoder
from outrider.engine.models.packing import PACKINGS
from outrider.engine.models.safetensors_source import SafetensorsSource
from outrider.engine.sampling import SamplingParameters
from outrider.engine.scheduling.limits import Limits
from outrider.engine.sequence import Sequence
from outrider.engine.verification.block import BlockVerifier
from outrider.engine.verification.fly import FlyVerifier
from outrider.engine.verification.synthetic import SyntheticVerifier
from outrider.errors import InvalidSetting
from outrider.records.request import FinishReason

NUM_BLOCKS = 24
MAX_LENGTH = 1_000
K = 6
STOP = 5
OTHER_STOP = 11

COST = CostCurve.of({1: 1.0, 8: 1.5, 60: 6.0, 200: 40.0})
WAYS: dict[str, Callable[[], dict[str, Any]]] = {
    "standard": dict,
    "standard, prefixes kept": lambda: {"prefix_caching": True},
    "block": lambda: {"verifier": BlockVerifier()},
    "adaptive, prefixes kept": lambda: {
        "adaptive": AdaptiveVerification(COST, K),
        "prefix_caching": True,
    },
    "adaptive, block": lambda: {
        "adaptive": AdaptiveVerification(COST, K),
        "verifier": BlockVerifier(),
    },
    "K by batch size": lambda: {
        "k_by_batch_size": BatchSizeRanges([[1, 3, K], [4, 9, 2]], num_speculative_tokens=K)
    },
    "n-gram, prefixes kept": lambda: {"drafter": NgramDrafter(K, 1, 3), "prefix_caching": True},
    "suffix": lambda: {"drafter": SuffixDrafter(K)},
    "fly, prefixes kept": lambda: {
        "verifier": FlyVerifier(window=2, entropy_threshold=0.3),
        "prefix_caching": True,
    },
    "synthetic": lambda: {"verifier": SyntheticVerifier((0.9, 0.5, 0.4, 0.3, 0.2, 0.1))},
}
"""How the engine serves; drafts are scripted where nothing else is said."""
LOSSY = {"fly, prefixes kept", "synthetic"}


def some(random: np.random.Generator, share: float, value: Any, otherwise: Any) -> Any:
    """`value` for that share of the requests."""
    return value if random.random() < share else otherwise


def parameters_of(random: np.random.Generator) -> SamplingParameters:
    """Anything that a request may ask of sampling and of stopping without a tokenizer."""
    return SamplingParameters(
        float(random.choice([0.0, 0.0, 0.7, 1.5])),
        int(random.integers(2**32)),
        top_k=int(random.choice([0, 3])),
        top_p=float(random.choice([1.0, 0.7])),
        min_p=some(random, 0.2, 0.3, 0.0),
        repetition_penalty=some(random, 0.3, 1.2, 1.0),
        presence_penalty=some(random, 0.2, 0.3, 0.0),
        frequency_penalty=some(random, 0.2, -0.1, 0.0),
        logit_bias=some(random, 0.2, {3: 0.5, 7: -5.0}, None),
        allowed_token_ids=some(random, 0.1, tuple(range(3, 15)), None),
        bad_words_token_ids=some(random, 0.3, ((7,), (8, 9)), ()),
        stop_token_ids=some(random, 0.2, (OTHER_STOP,), ()),
        ignore_eos=bool(random.random() < 0.2),
        min_tokens=int(random.choice([0, 3])),
        logprobs=some(random, 0.2, int(random.integers(3)), None),
        prompt_logprobs=some(random, 0.1, 0, None),
    )


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
        # A few can never fit.
        most = int(random.integers(3, 3 * BLOCK)) if random.random() < 0.97 else NUM_BLOCKS * BLOCK
        name = f"r{len(self.made) + self.refused}"
        return request(prompt, most, name, stop_ids=[STOP], parameters=parameters_of(self.random))

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
    model: TargetModel | None = None,
    drafter: Drafter | None = None,
    **options: Any,
) -> Traffic:
    random = np.random.default_rng(seed)
    traffic = Traffic(random)
    engine, recorder = engine_of(
        model or RememberingModel(NUM_BLOCKS),
        drafter or ScriptedDrafter(traffic.drafted),
        K,
        limits=Limits(8, 100),
        **options,
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
        ends = {*parameters.stop_token_ids, *(() if parameters.ignore_eos else (STOP,))}
        if reason is FinishReason.LENGTH:
            assert sequence.room_tokens == 0
        if parameters.prompt_logprobs is not None and output:
            told = sum(len(each.chosen) for each in sequence.prompt_logprobs)
            assert told == sequence.prompt_tokens - 1
        if reason is FinishReason.STOP:
            assert output[-1] in ends
            assert len(output) > parameters.min_tokens
        assert not ends & set(output[parameters.min_tokens : -1])


def assert_as_alone(
    traffic: Traffic,
    *,
    model: TargetModel | None = None,
    most: int = 150,
    greedy_only: bool = False,
) -> None:
    """Holds answers, complete or broken off, to those of plain decoding one request at a time."""
    answered = [
        each
        for each in traffic.made.values()
        if len(each.output_token_ids) and (each.sampling.parameters.greedy or not greedy_only)
    ]
    for sequence in answered[:: max(len(answered) // most, 1)]:
        engine, _ = engine_of(model or RememberingModel(NUM_BLOCKS), NoDrafter(), 0)
        alone = request(
            sequence.token_ids[: sequence.prompt_tokens].tolist(),
            sequence.most_tokens - sequence.prompt_tokens,
            stop_ids=[STOP],
            parameters=sequence.sampling.parameters,
        )
        engine.add(alone)
        finish(engine)
        expected, output = alone.output_token_ids, sequence.output_token_ids
        whole = traffic.ended[sequence.request_id] in (FinishReason.LENGTH, FinishReason.STOP)
        assert output.tolist() == expected[: None if whole else len(output)].tolist()


@pytest.mark.parametrize("way", WAYS)
def test_after_a_while_of_mixed_traffic_every_request_is_accounted_for(way: str) -> None:
    traffic = soak(len(way), steps=400, **WAYS[way]())
    assert_ended_well(traffic)
    if way not in LOSSY:
        assert_as_alone(traffic)
    assert len(traffic.made) > 30
    assert {FinishReason.LENGTH, FinishReason.STOP, None} <= set(traffic.ended.values())


@pytest.fixture(scope="module")
def kernels(checkpoint: Callable[..., Path]) -> TargetModel:
    source = SafetensorsSource(checkpoint(vocab_size=VOCABULARY, num_hidden_layers=2))
    return FusedDecoder(
        source,
        packing=PACKINGS["float32"],
        num_blocks=NUM_BLOCKS,
        max_length=MAX_LENGTH,
        threads=2,
    )


@pytest.mark.parametrize("way", ["standard, prefixes kept", "adaptive, block"])
def test_so_it_is_on_real_kernels(kernels: TargetModel, way: str) -> None:
    traffic = soak(7, steps=400, model=kernels, **WAYS[way]())
    assert_ended_well(traffic)
    assert_as_alone(traffic, model=kernels)


@pytest.mark.parametrize("draft_blocks", [NUM_BLOCKS, 5])
@pytest.mark.parametrize("method", ["greedy", "probabilistic"])
def test_so_it_is_with_a_draft_model_which_holds_nothing_in_the_end(
    method: DraftSampleMethod, draft_blocks: int
) -> None:
    for seed, way in enumerate(("standard", "adaptive, prefixes kept")):
        options = WAYS[way]()
        drafter = drafter_of(
            MostlyRight(draft_blocks),
            method,
            max_rows=50,
            prefix_caching=bool(seed),
            judge=options.get("adaptive"),
        )
        traffic = soak(seed, steps=400, drafter=drafter, **options)
        assert_ended_well(traffic)
        assert_as_alone(traffic, greedy_only=method == "probabilistic")
        assert None in traffic.ended.values()
        assert free(drafter)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_after_ten_minutes_of_mixed_traffic_every_request_is_accounted_for(
    kernels: TargetModel,
) -> None:
    seconds = float(os.environ.get("OUTRIDER_SOAK_S", "600"))
    reasons: set[FinishReason | None] = set()
    refused = 0
    for place, way in enumerate(WAYS):
        model = kernels if place % 2 else None
        traffic = soak(2026 + place, seconds=seconds / len(WAYS), model=model, **WAYS[way]())
        assert_ended_well(traffic)
        if way not in LOSSY:
            assert_as_alone(traffic, model=model, most=40)
        reasons |= set(traffic.ended.values())
        refused += traffic.refused
    assert refused > 0
    assert reasons == {*FinishReason, None}
