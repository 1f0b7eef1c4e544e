"""Speculation against plain decoding, token for token: random models, and the real one."""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.loops import VOCABULARY, ScriptedDrafter, engine_of, finish, request

from outrider.bench.workload import bundled_workload
from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.verification import AdaptiveVerification
from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.batch_size_ranges import BatchSizeRanges
from outrider.engine.drafting.ngram import NgramDrafter
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.drafting.registry import DRAFTERS
from outrider.engine.drafting.suffix import SuffixDrafter
from outrider.engine.models.base import Rows, TargetModel
from outrider.engine.models.eager import EagerDecoder
from outrider.engine.models.fused import FusedDecoder
from outrider.engine.models.packing import PACKINGS
from outrider.engine.models.safetensors_source import SafetensorsSource
from outrider.engine.models.source import open_weights
from outrider.engine.sampling import SamplingParameters
from outrider.engine.scheduling.limits import Limits
from outrider.engine.sequence import Sequence
from outrider.engine.tokenizer import Tokenizer
from outrider.engine.verification.base import Verifier
from outrider.engine.verification.fly import FlyVerifier
from outrider.engine.verification.registry import VERIFIERS, build_verifier
from outrider.engine.verification.synthetic import SyntheticVerifier
from outrider.records.arm import TieRule
from outrider.records.request import StepRecord

# On small random models: whatever is drafted, the output is that of plain decoding.


SEQUENCES = 16
Request = tuple[str, list[int], int]
Outputs = dict[str, list[int]]
Steps = dict[str, tuple[StepRecord, ...]]


def short_requests() -> list[Request]:
    """Names, prompts and maxima of 240 requests, some of whose prompts repeat themselves."""
    random = np.random.default_rng(11)
    made = []
    for i in range(240):
        prompt = random.integers(0, VOCABULARY, random.integers(1, 9)).tolist()
        made.append((f"r{i}", prompt * int(random.integers(1, 4)), int(random.integers(1, 25))))
    return made


REQUESTS = short_requests()
STOP_IDS = (3, 17)


def answer_all(
    model: TargetModel, requests: list[Request], drafter: Drafter, k: int, *, together: int
) -> tuple[Outputs, Steps]:
    """Answers all requests, `together` at a time: whichever ends makes room for the next."""
    limits = Limits(max_num_seqs=together, max_num_batched_tokens=max(48, together))
    engine, recorder = engine_of(model, drafter, k, limits=limits)
    sequences = [
        request(prompt, max_tokens, name, stop_ids=STOP_IDS)
        for name, prompt, max_tokens in requests
    ]
    for sequence in sequences:
        engine.add(sequence)
    finish(engine)
    outputs: Outputs = {each.request_id: each.output_token_ids.tolist() for each in sequences}
    steps = {each.request_id: tuple(recorder.take(each).steps) for each in sequences}
    return outputs, steps


def fused(folder: Path, dtype: str) -> TargetModel:
    source = SafetensorsSource(folder)
    return FusedDecoder(
        source, packing=PACKINGS[dtype], num_blocks=SEQUENCES, max_length=50, threads=2
    )


def eager(folder: Path) -> TargetModel:
    source = SafetensorsSource(folder)
    cpu = torch.device("cpu")
    return EagerDecoder(
        source, dtype=torch.float32, num_blocks=SEQUENCES, max_length=50, device=cpu
    )


MODELS: dict[str, Callable[[Path], TargetModel]] = {
    "fused float32": lambda folder: fused(folder, "float32"),
    "fused bfloat16": lambda folder: fused(folder, "bfloat16"),
    "fused int8": lambda folder: fused(folder, "int8"),
    "fused int4": lambda folder: fused(folder, "int4"),
    "torch float32": eager,
}


@dataclass(frozen=True)
class Plain:
    """A model, and what it answers with no speculation and one request at a time."""

    model: TargetModel
    requests: list[Request]
    outputs: Outputs

    def speculate(self, drafter: Drafter, k: int) -> Steps:
        """Answers the requests in batches, holds the answers to the plain ones."""
        outputs, steps = answer_all(self.model, self.requests, drafter, k, together=SEQUENCES)
        self.assert_equal(outputs)
        assert_consistent(outputs, steps, k)
        return steps

    def following(self, sequence: Sequence) -> list[int]:
        """What plain decoding puts after the tokens that `sequence` has."""
        return self.outputs[sequence.request_id][len(sequence.output_token_ids) :]

    def assert_equal(self, outputs: Outputs) -> None:
        """Token for token, but for places where rounding may decide between the two best."""
        for name, prompt, _ in self.requests:
            plain, seen = self.outputs[name], outputs[name]
            if plain == seen:
                continue
            differs = [a != b for a, b in zip(plain, seen, strict=False)]
            at = differs.index(True) if True in differs else min(len(plain), len(seen))
            tokens = [*prompt, *plain[:at]]
            rows = Rows(tokens, range(len(tokens)), [0] * len(tokens), [[0]], [len(tokens) - 1])
            best, second = self.model.forward(rows)[0].topk(2).values.tolist()
            assert best - second < self.model.logit_tolerance / 10, (name, at, plain, seen)


@pytest.fixture(scope="module", params=MODELS)
def plain(request: pytest.FixtureRequest, checkpoint: Callable[..., Path]) -> Plain:
    model = MODELS[request.param](checkpoint(vocab_size=VOCABULARY, num_hidden_layers=2))
    # torch takes its time over tiny operators.
    requests = REQUESTS if isinstance(model, FusedDecoder) else REQUESTS[:80]
    outputs, _ = answer_all(model, requests, NoDrafter(), 0, together=1)
    return Plain(model, requests, outputs)


def totals(steps: Steps) -> tuple[int, int]:
    """All drafted and all accepted tokens."""
    every = [step for each in steps.values() for step in each]
    return sum(step.drafted for step in every), sum(step.accepted for step in every)


def assert_consistent(outputs: Outputs, steps: Steps, k: int) -> None:
    for name, output in outputs.items():
        assert sum(step.emitted for step in steps[name]) == len(output) - 1
        for step in steps[name]:
            assert 0 <= step.accepted <= step.drafted <= k
        for step in steps[name][:-1]:
            assert step.emitted == step.accepted + 1
        for step in steps[name][-1:]:
            assert 1 <= step.emitted <= step.accepted + 1


def test_the_requests_end_in_every_way(plain: Plain) -> None:
    reasons: Counter[bool] = Counter()
    for name, _, max_tokens in plain.requests:
        output = plain.outputs[name]
        assert 1 <= len(output) <= max_tokens
        assert not set(output[:-1]) & set(STOP_IDS)
        stopped = output[-1] in STOP_IDS
        assert stopped or len(output) == max_tokens
        reasons[stopped] += 1
    assert min(reasons[True], reasons[False]) > len(plain.requests) / 8


def test_plain_decoding_in_a_batch_equals_plain_decoding_alone(plain: Plain) -> None:
    assert totals(plain.speculate(NoDrafter(), 0)) == (0, 0)


@pytest.mark.parametrize("tie", ["recent", "earliest"])
@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_ngram_drafting_gives_the_output_of_plain_decoding(
    plain: Plain, k: int, tie: TieRule
) -> None:
    steps = plain.speculate(NgramDrafter(k, 1, 3, tie), k)
    drafted, accepted = totals(steps)
    assert 0 < accepted < drafted


@pytest.mark.parametrize("k", [1, 4, 24])
def test_suffix_drafting_gives_the_output_of_plain_decoding(plain: Plain, k: int) -> None:
    steps = plain.speculate(SuffixDrafter(k), k)
    drafted, accepted = totals(steps)
    assert 0 < accepted < drafted


@pytest.mark.parametrize("k", [1, 8])
def test_random_drafts_give_the_output_of_plain_decoding(plain: Plain, k: int) -> None:
    random = np.random.default_rng(3)
    drafter = ScriptedDrafter(lambda _: random.integers(0, VOCABULARY, 8).tolist())
    steps = plain.speculate(drafter, k)
    drafted, accepted = totals(steps)
    assert accepted < drafted / 5


@pytest.mark.parametrize("k", [1, 8])
def test_drafts_that_are_always_right_are_all_accepted(plain: Plain, k: int) -> None:
    steps = plain.speculate(ScriptedDrafter(plain.following), k)
    drafted, accepted = totals(steps)
    if plain.model.logit_tolerance == 0:
        assert accepted == drafted > 0
    else:
        assert accepted > 0.98 * drafted  # where rounding decides, even an oracle may err


def test_drafts_right_up_to_some_place_give_the_output_of_plain_decoding(plain: Plain) -> None:
    random = np.random.default_rng(4)

    def partly_right(sequence: Sequence) -> list[int]:
        tokens = plain.following(sequence)[: random.integers(0, 9)]
        for at in np.flatnonzero(random.random(len(tokens)) < 0.2):
            tokens[at] = int(random.integers(0, VOCABULARY))
        return tokens

    steps = plain.speculate(ScriptedDrafter(partly_right), 8)
    drafted, accepted = totals(steps)
    assert drafted / 3 < accepted < drafted


# Greedy and random requests in one batch, under every lossless rule, with every way to serve them.


def asked(place: int) -> SamplingParameters:
    """Every second request is greedy, the others at several temperatures with their own seed."""
    if place % 2:
        return SamplingParameters()
    return SamplingParameters(0.5 + place % 3 / 2, place, top_k=(0, 7)[place % 4 // 2])


def greedy(_: int) -> SamplingParameters:
    """Every request is."""
    return SamplingParameters()


def answer_mixed(
    model: TargetModel,
    drafter: Drafter,
    k: int,
    *,
    asking: Callable[[int], SamplingParameters] = asked,
    **options: Any,
) -> tuple[Outputs, Steps]:
    """Answers the first 200 requests, each of which asks what `asking` says of its place."""
    engine, recorder = engine_of(model, drafter, k, limits=Limits(12, 64), **options)
    sequences = [
        request(prompt, most, name, stop_ids=STOP_IDS, parameters=asking(place))
        for place, (name, prompt, most) in enumerate(REQUESTS[:200])
    ]
    for sequence in sequences:
        engine.add(sequence)
    finish(engine)
    outputs = {each.request_id: each.output_token_ids.tolist() for each in sequences}
    return outputs, {each.request_id: tuple(recorder.take(each).steps) for each in sequences}


CHEAP = CostCurve.of({1: 1.0, 200: 2.0})
STEEP = CostCurve.of({1: 1.0, 200: 2_000.0})
"""No draft pays, so that none is made in most of the steps."""
LOSSLESS: dict[str, Verifier] = {
    name: build_verifier(name)
    for name in VERIFIERS
    if name not in (SyntheticVerifier.name, FlyVerifier.name)
}
MIXED: dict[str, dict[str, Any]] = {
    **{name: {"verifier": verifier} for name, verifier in LOSSLESS.items()},
    "adaptive": {"adaptive": AdaptiveVerification(CHEAP, 6)},
    "adaptive with pauses": {"adaptive": AdaptiveVerification(STEEP, 6)},
    "a cache with room for seven": {"num_blocks": 7, "prefix_caching": True},
    "K by batch size": {
        "k_by_batch_size": BatchSizeRanges([[1, 5, 6], [6, 12, 1]], num_speculative_tokens=6)
    },
}


@pytest.fixture(scope="module")
def mixed(checkpoint: Callable[..., Path]) -> tuple[TargetModel, Outputs]:
    model = fused(checkpoint(vocab_size=VOCABULARY, num_hidden_layers=2), "float32")
    return model, answer_mixed(model, NoDrafter(), 0)[0]


def test_every_lossless_rule_and_every_lookup_is_tried() -> None:
    assert {make().name for make in LOOKUPS.values()} == DRAFTERS.keys() - {NoDrafter.name}
    assert all(verifier.lossless for verifier in LOSSLESS.values())
    assert not SyntheticVerifier.lossless
    assert not FlyVerifier.lossless


def partly_right(plain: Outputs) -> ScriptedDrafter:
    """Drafts of which seven tokens in ten are those of `plain`."""
    random = np.random.default_rng(6)

    def draft(sequence: Sequence) -> list[int]:
        done = len(sequence.output_token_ids)
        right = plain[sequence.request_id][done : done + 6]
        return [t if random.random() < 0.7 else int(random.integers(VOCABULARY)) for t in right]

    return ScriptedDrafter(draft)


LOOKUPS: dict[str, Callable[[], Drafter]] = {
    "ngram": lambda: NgramDrafter(6, 1, 3),
    "ngram that fills up": lambda: NgramDrafter(6, 2, 3, "earliest", fill=True),
    "suffix": lambda: SuffixDrafter(6),
}


@pytest.mark.parametrize("way", MIXED)
def test_two_hundred_mixed_requests_get_the_tokens_of_plain_decoding_seed_by_seed(
    mixed: tuple[TargetModel, Outputs], way: str
) -> None:
    model, plain = mixed
    for drafter in (*(make() for make in LOOKUPS.values()), partly_right(plain)):
        outputs, steps = answer_mixed(model, drafter, 6, **MIXED[way])
        assert outputs == plain
        drafted, accepted = totals(steps)
        assert 0 < accepted < drafted


@pytest.mark.parametrize("rule", LOSSLESS)
@pytest.mark.parametrize("name", LOOKUPS)
def test_two_hundred_greedy_requests_get_the_tokens_of_plain_decoding(
    mixed: tuple[TargetModel, Outputs], name: str, rule: str
) -> None:
    model, _ = mixed
    plain, _ = answer_mixed(model, NoDrafter(), 0, asking=greedy)
    outputs, steps = answer_mixed(model, LOOKUPS[name](), 6, asking=greedy, verifier=LOSSLESS[rule])
    assert outputs == plain
    drafted, accepted = totals(steps)
    assert 0 < accepted < drafted


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_real_model_in_float32_speculates_without_changing_a_token(smollm2: Path) -> None:
    tokenizer = Tokenizer(smollm2)
    source = open_weights(smollm2)
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    model = FusedDecoder(
        source, packing=PACKINGS["float32"], num_blocks=16, max_length=1_024, threads=threads
    )
    for prompt in bundled_workload().prompts:
        outputs = []
        for drafter, k in ((NoDrafter(), 0), (NgramDrafter(8, 2, 4), 8), (SuffixDrafter(8), 8)):
            engine, _ = engine_of(model, drafter, k)
            sequence = request(
                tokenizer.encode_chat(prompt.chat),
                min(prompt.max_tokens, 64),
                stop_ids=source.config.eos_token_ids,
            )
            engine.add(sequence)
            finish(engine)
            outputs.append(sequence.output_token_ids.tolist())
        plain, *speculative = outputs
        assert speculative == [plain, plain], prompt.prompt_id
        assert len(plain) > 1, prompt.prompt_id
