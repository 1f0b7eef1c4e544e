import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from outrider.bench.workload import bundled_workload
from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.draft import Draft
from outrider.engine.drafting.ngram import NgramDrafter
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.loop import StepLoop
from outrider.engine.models.base import Rows, TargetModel
from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.eager import EagerLlama
from outrider.engine.models.fused import FusedLlama
from outrider.engine.models.safetensors_source import SafetensorsSource
from outrider.engine.models.source import open_weights
from outrider.engine.recorder import StepRecorder
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.sequence import Sequence
from outrider.engine.tokenizer import Tokenizer
from outrider.engine.verification.base import Verdict
from outrider.engine.verification.standard import StandardVerifier
from outrider.records.arm import TieRule
from outrider.records.request import FinishReason, StepRecord

SLOTS = 16
VOCABULARY = 24
Outputs = dict[str, list[int]]
Steps = dict[str, tuple[StepRecord, ...]]


@dataclass
class Clock:
    """A clock that only moves when told to."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class CountingModel:
    """A target that counts: after token t comes t + 1, whatever came before."""

    clock: Clock = field(default_factory=Clock)
    forward_s: float = 0.0
    config: DecoderConfig = field(init=False)  # nobody asks it
    capacity: int = 1_000
    dtype: torch.dtype = torch.float32
    logit_tolerance: float = 0.0

    def forward(self, rows: Rows) -> torch.Tensor:
        self.clock.now_s += self.forward_s
        following = torch.tensor(list(rows.token_ids))[list(rows.wanted)] + 1
        return torch.nn.functional.one_hot(following % 100, 100).float()


@dataclass
class ScriptedDrafter:
    """Drafts what `script` says about a sequence, as far as the limit allows."""

    name: ClassVar[str] = "scripted"

    script: Callable[[Sequence], Iterable[int]]
    clock: Clock = field(default_factory=Clock)
    propose_s: float = 0.0
    observe_s: float = 0.0
    verdicts: list[Verdict] = field(default_factory=list)

    def propose(self, batch: list[Sequence], limit: NDArray[np.int64]) -> Draft:
        self.clock.now_s += self.propose_s
        draft = Draft.empty(len(batch), int(limit.max()))
        for row, (sequence, most) in enumerate(zip(batch, limit, strict=True)):
            tokens = list(self.script(sequence))[:most]
            draft.tokens[row, : len(tokens)] = tokens
            draft.lengths[row] = len(tokens)
        return draft

    def observe(self, batch: list[Sequence], verdict: Verdict) -> None:
        self.clock.now_s += self.observe_s
        self.verdicts.append(verdict)


def counting_on(sequence: Sequence) -> Iterable[int]:
    """The oracle of a `CountingModel`."""
    last = int(sequence.token_ids[-1])
    return range(last + 1, last + 20)


def request(prompt: list[int], max_tokens: int, name: str = "r", slot: int = 0) -> Sequence:
    sampling = Sampling.seeded(SamplingParameters())
    return Sequence(name, prompt, max_tokens=max_tokens, sampling=sampling, slot=slot)


def loop_of(
    model: TargetModel,
    drafter: Drafter,
    k: int,
    *,
    stop_ids: Iterable[int] = (),
    clock: Callable[[], float] | None = None,
) -> tuple[StepLoop, StepRecorder]:
    recorder = StepRecorder()
    loop = StepLoop(
        model=model,
        drafter=drafter,
        verifier=StandardVerifier(),
        recorder=recorder,
        k=k,
        stop_ids=frozenset(stop_ids),
        clock=clock or Clock(),
    )
    return loop, recorder


def counted(
    max_tokens: int, k: int, *stop_ids: int
) -> tuple[list[int], FinishReason | None, tuple[StepRecord, ...]]:
    """What follows the prompt [0] when every draft is right, why it ended, and its steps."""
    loop, recorder = loop_of(CountingModel(), ScriptedDrafter(counting_on), k, stop_ids=stop_ids)
    sequence = request([0], max_tokens)
    loop.prefill(sequence)
    while loop.finished(sequence) is None:
        loop.step([sequence])
    output: list[int] = sequence.output_token_ids.tolist()
    return output, loop.finished(sequence), recorder.take(sequence)


# By hand, on a target that counts.


def test_the_prefill_gives_the_first_token_and_is_no_step() -> None:
    assert counted(1, 4) == ([1], FinishReason.LENGTH, ())
    assert counted(9, 4, 1) == ([1], FinishReason.STOP, ())


def test_a_step_emits_what_was_accepted_and_the_bonus_token() -> None:
    output, _, steps = counted(11, 4)
    assert output == [*range(1, 12)]
    assert [(step.drafted, step.accepted, step.emitted) for step in steps] == [(4, 4, 5)] * 2


@pytest.mark.parametrize("stop", range(2, 12))
def test_a_stop_token_within_an_accepted_run_ends_the_output_there(stop: int) -> None:
    output, reason, steps = counted(50, 4, stop)
    assert output == [*range(1, stop + 1)]
    assert reason is FinishReason.STOP
    assert all((step.drafted, step.accepted) == (4, 4) for step in steps)
    assert [step.emitted for step in steps[:-1]] == [5] * (len(steps) - 1)
    assert sum(step.emitted for step in steps) == len(output) - 1


def test_of_several_stop_tokens_the_first_to_come_ends_the_output() -> None:
    assert counted(50, 8, 30, 5, 7)[:2] == ([1, 2, 3, 4, 5], FinishReason.STOP)


def test_without_stop_tokens_the_output_ends_at_its_maximum() -> None:
    assert counted(50, 8)[:2] == ([*range(1, 51)], FinishReason.LENGTH)


@pytest.mark.parametrize("max_tokens", range(1, 14))
def test_the_maximum_is_met_exactly_and_no_draft_is_longer_than_what_still_fits(
    max_tokens: int,
) -> None:
    output, reason, steps = counted(max_tokens, 4)
    assert output == [*range(1, max_tokens + 1)]
    assert reason is FinishReason.LENGTH
    room = max_tokens - 1
    for step in steps:
        assert step.drafted == step.accepted == min(4, room - 1)
        assert step.emitted == step.drafted + 1
        room -= step.emitted
    assert room == 0


def test_a_stop_token_in_the_last_place_that_fits_counts_as_a_stop() -> None:
    assert counted(7, 8, 7)[:2] == ([1, 2, 3, 4, 5, 6, 7], FinishReason.STOP)


def test_a_stop_token_in_the_prompt_does_not_stop() -> None:
    loop, _ = loop_of(CountingModel(), NoDrafter(), 0, stop_ids=[8])
    sequence = request([8, 3], 5)
    loop.prefill(sequence)
    assert loop.finished(sequence) is None


def test_a_wrong_draft_costs_nothing_but_itself() -> None:
    # The second of every draft's tokens is wrong.
    drafter = ScriptedDrafter(lambda sequence: [int(sequence.token_ids[-1]) + 1, 99, 98])
    loop, recorder = loop_of(CountingModel(), drafter, 3)
    sequence = request([0], 9)
    loop.prefill(sequence)
    while loop.finished(sequence) is None:
        loop.step([sequence])
    assert sequence.output_token_ids.tolist() == [*range(1, 10)]
    seen = [(step.drafted, step.accepted, step.emitted) for step in recorder.take(sequence)]
    assert seen == [(3, 1, 2), (3, 1, 2), (3, 1, 2), (1, 1, 2)]


def test_the_drafter_hears_every_verdict_once_the_tokens_are_appended() -> None:
    lengths: list[int] = []

    class Listening(ScriptedDrafter):
        def observe(self, batch: list[Sequence], verdict: Verdict) -> None:
            super().observe(batch, verdict)
            lengths.append(len(batch[0]))

    drafter = Listening(counting_on)
    loop, _ = loop_of(CountingModel(), drafter, 2)
    sequence = request([0], 7)
    loop.prefill(sequence)
    loop.step([sequence])
    loop.step([sequence])
    assert lengths == [5, 8]
    assert [verdict.accepted.tolist() for verdict in drafter.verdicts] == [[2], [2]]


def test_each_request_of_a_batch_has_its_own_step_record() -> None:
    drafter = ScriptedDrafter(
        lambda sequence: {"right": counting_on(sequence), "wrong": [99], "none": []}[
            sequence.request_id
        ]
    )
    loop, recorder = loop_of(CountingModel(), drafter, 3)
    batch = [request([5], 9, name) for name in ("right", "none", "wrong")]
    for sequence in batch:
        loop.prefill(sequence)
    loop.step(batch)
    steps = [recorder.take(sequence) for sequence in batch]
    assert [(each.drafted, each.accepted, each.emitted) for (each,) in steps] == [
        (3, 3, 4),
        (0, 0, 1),
        (1, 0, 1),
    ]
    assert [sequence.output_token_ids.tolist() for sequence in batch] == [
        [6, 7, 8, 9, 10],
        [6, 7],
        [6, 7],
    ]


def test_times_are_those_of_the_clock_and_the_parts_of_a_step_lie_within_it() -> None:
    clock = Clock()
    model = CountingModel(clock, forward_s=5.0)
    drafter = ScriptedDrafter(counting_on, clock, propose_s=2.0, observe_s=0.5)
    loop, recorder = loop_of(model, drafter, 2, clock=clock)
    batch = [request([at], 9, f"r{at}", at) for at in range(2)]
    assert [loop.prefill(sequence) for sequence in batch] == [5.0, 5.0]
    loop.step(batch)
    clock.now_s += 100.0  # between two steps, so in none
    loop.step(batch)
    for sequence in batch:
        times = [(s.draft_s, s.verify_s, s.step_s) for s in recorder.take(sequence)]
        assert times == [(2.0, 5.0, 7.5)] * 2


# On small random models: whatever is drafted, the output is that of plain decoding.


Request = tuple[str, list[int], int]


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
    model: TargetModel, requests: list[Request], drafter: Drafter, k: int, *, slots: int
) -> tuple[Outputs, Steps]:
    """Answers all requests, `slots` at a time: whichever ends gives its slot to the next."""
    loop, recorder = loop_of(model, drafter, k, stop_ids=STOP_IDS)
    waiting = list(reversed(requests))
    vacant = list(range(slots))
    running: list[Sequence] = []
    outputs: Outputs = {}
    while waiting or running:
        while waiting and vacant:
            name, prompt, max_tokens = waiting.pop()
            running.append(request(prompt, max_tokens, name, vacant.pop(0)))
            loop.prefill(running[-1])
        ended = [sequence for sequence in running if loop.finished(sequence)]
        for sequence in ended:
            outputs[sequence.request_id] = sequence.output_token_ids.tolist()
            running.remove(sequence)
            vacant.append(sequence.slot)
        if running:
            loop.step(running)
    steps = {name: recorder.take(request([0], 1, name)) for name in outputs}
    return outputs, steps


def fused(folder: Path, dtype: torch.dtype) -> TargetModel:
    source = SafetensorsSource(folder)
    return FusedLlama(source, dtype=dtype, slots=SLOTS, capacity=50, threads=2)


def eager(folder: Path) -> TargetModel:
    source = SafetensorsSource(folder)
    cpu = torch.device("cpu")
    return EagerLlama(source, dtype=torch.float32, slots=SLOTS, capacity=50, device=cpu)


MODELS: dict[str, Callable[[Path], TargetModel]] = {
    "fused float32": lambda folder: fused(folder, torch.float32),
    "fused bfloat16": lambda folder: fused(folder, torch.bfloat16),
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
        outputs, steps = answer_all(self.model, self.requests, drafter, k, slots=SLOTS)
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
            rows = Rows(tokens, range(len(tokens)), [0] * len(tokens), [len(tokens) - 1])
            best, second = self.model.forward(rows)[0].topk(2).values.tolist()
            assert best - second < self.model.logit_tolerance / 10, (name, at, plain, seen)


@pytest.fixture(scope="module", params=MODELS)
def plain(request: pytest.FixtureRequest, checkpoint: Callable[..., Path]) -> Plain:
    model = MODELS[request.param](checkpoint(vocab_size=VOCABULARY, num_hidden_layers=2))
    # torch takes its time over tiny operators.
    requests = REQUESTS if isinstance(model, FusedLlama) else REQUESTS[:80]
    outputs, _ = answer_all(model, requests, NoDrafter(), 0, slots=1)
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


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_real_model_in_float32_speculates_without_changing_a_token(smollm2: Path) -> None:
    tokenizer = Tokenizer(smollm2)
    source = open_weights(smollm2)
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    model = FusedLlama(source, dtype=torch.float32, slots=1, capacity=1_024, threads=threads)
    for prompt in bundled_workload().prompts:
        outputs = []
        for drafter, k in ((NoDrafter(), 0), (NgramDrafter(8, 2, 4), 8)):
            loop, _ = loop_of(model, drafter, k, stop_ids=source.config.eos_token_ids)
            sequence = request(tokenizer.encode_chat(prompt.chat), min(prompt.max_tokens, 64))
            loop.prefill(sequence)
            while loop.finished(sequence) is None:
                loop.step([sequence])
            outputs.append(sequence.output_token_ids.tolist())
        plain, speculative = outputs
        assert speculative == plain, prompt.prompt_id
        assert len(plain) > 1, prompt.prompt_id
