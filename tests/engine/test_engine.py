"""Requests that come, wait, run together, give way and leave, on a target that counts."""

from collections.abc import Iterable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.engine.loops import (
    VOCABULARY,
    CountingModel,
    RememberingModel,
    ScriptedDrafter,
    counting_on,
    engine_of,
    finish,
    following,
    request,
)

from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.step_costs import FIT_STEPS
from outrider.engine.adaptive.verification import AdaptiveVerification
from outrider.engine.drafting.batch_size_ranges import BatchSizeRanges
from outrider.engine.drafting.draft import Draft
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.engine import Engine
from outrider.engine.models.base import BLOCK_TOKENS as BLOCK
from outrider.engine.models.base import Rows
from outrider.engine.recorder import StepRecorder
from outrider.engine.scheduling.limits import Limits
from outrider.engine.sequence import Sequence
from outrider.engine.verification.base import Verdict
from outrider.errors import InvalidSetting
from outrider.records.request import FinishReason


def free_blocks(engine: Engine) -> int:
    return engine.scheduler.cache.pool.free_blocks


def test_requests_join_and_leave_at_any_step() -> None:
    engine, _ = engine_of(CountingModel(), ScriptedDrafter(counting_on), 2)
    early, late = request([0], 10, "early"), request([50], 3, "late")
    engine.add(early)
    engine.step()
    engine.step()
    engine.add(late)
    assert finish(engine) == {"early": FinishReason.LENGTH, "late": FinishReason.LENGTH}
    assert early.output_token_ids.tolist() == [*range(1, 11)]
    assert late.output_token_ids.tolist() == [51, 52, 53]


def test_all_blocks_are_free_when_all_requests_have_ended() -> None:
    engine, _ = engine_of(CountingModel(), ScriptedDrafter(counting_on), 3, num_blocks=7)
    for place in range(5):
        engine.add(request([place] * 70, 40, f"r{place}"))
    finish(engine)
    assert free_blocks(engine) == 7
    assert not engine.busy


def test_a_cancelled_request_is_gone_and_its_blocks_with_it() -> None:
    engine, _ = engine_of(CountingModel(), NoDrafter(), 0, num_blocks=4)
    engine.add(request([1] * 100, 50, "gone"))
    engine.add(request([1] * 10, 5, "stays"))
    engine.step()
    assert free_blocks(engine) == 1
    engine.cancel("gone")
    assert free_blocks(engine) == 3
    assert finish(engine) == {"stays": FinishReason.LENGTH}


def test_cancelling_what_has_ended_changes_nothing() -> None:
    engine, _ = engine_of(CountingModel(), NoDrafter(), 0)
    engine.add(request([1], 1))
    finish(engine)
    engine.cancel("r")
    assert not engine.busy


def test_a_request_longer_than_the_target_takes_is_refused_with_the_numbers() -> None:
    engine, _ = engine_of(CountingModel(max_length=50), NoDrafter(), 0)
    with pytest.raises(InvalidSetting, match=r"40 prompt tokens and asks for 11 more.*at most 50"):
        engine.add(request([1] * 40, 11))
    assert not engine.busy


def test_two_requests_may_not_have_the_same_id() -> None:
    engine, _ = engine_of(CountingModel(), NoDrafter(), 0)
    engine.add(request([1], 1))
    with pytest.raises(InvalidSetting, match="a second request 'r'"):
        engine.add(request([1], 1))


def test_an_idle_engine_does_nothing() -> None:
    engine, _ = engine_of(CountingModel(), NoDrafter(), 0)
    assert engine.step() == []


@pytest.mark.parametrize("prefix_caching", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_with_too_little_cache_every_request_still_gets_its_answer(
    seed: int, prefix_caching: bool
) -> None:
    random = np.random.default_rng(seed)

    def partly_right(sequence: Sequence) -> list[int]:
        right = RememberingModel.answer(sequence.token_ids.tolist(), int(random.integers(0, 5)))
        return [*right, int(random.integers(0, VOCABULARY))]

    model = RememberingModel(num_blocks=6)
    engine, _ = engine_of(
        model,
        ScriptedDrafter(partly_right),
        5,
        limits=Limits(6, 90),
        prefix_caching=prefix_caching,
    )
    beginnings = [random.integers(0, VOCABULARY, 2 * BLOCK).tolist() for _ in range(3)]
    sequences = []
    for place in range(15):
        beginning = beginnings[int(random.integers(3))][: int(random.integers(1, 2 * BLOCK))]
        prompt = beginning + random.integers(0, VOCABULARY, int(random.integers(1, 20))).tolist()
        sequences.append(request(prompt, int(random.integers(1, 2 * BLOCK)), f"r{place}"))
    for sequence in sequences:
        engine.add(sequence)
        if random.random() < 0.5:
            engine.step()
    finish(engine)
    for sequence in sequences:
        prompt = sequence.token_ids[: sequence.prompt_tokens].tolist()
        assert sequence.room_tokens == 0
        answer = RememberingModel.answer(prompt, len(sequence) - len(prompt))
        assert sequence.output_token_ids.tolist() == answer
    assert free_blocks(engine) == 6
    assert engine.scheduler.preemptions > 0


def test_a_cached_beginning_is_not_computed_again_and_the_answer_is_the_same() -> None:
    beginning = [*range(20)] * 10  # 200 tokens, 3 whole blocks
    answers, computed = [], []
    for prefix_caching in (False, True):
        model = RememberingModel(num_blocks=20)
        engine, _ = engine_of(model, NoDrafter(), 0, prefix_caching=prefix_caching)
        sequences = [request([*beginning, place], 5, f"r{place}") for place in range(2)]
        for sequence in sequences:
            engine.add(sequence)
            finish(engine)
        answers.append([each.output_token_ids.tolist() for each in sequences])
        computed.append(model.rows)
        cached = [each.cached_tokens for each in sequences]
        assert cached == ([0, 3 * BLOCK] if prefix_caching else [0, 0])
    assert answers[0] == answers[1]
    assert computed[0] - computed[1] == 3 * BLOCK


class TappingDrafter:
    """Keeps in the target's blocks a row for each token but the last, made of the token after it.

    So does a drafter that taps features. Right where its rows are, and wrong by one where a single
    one is another's; `foreign` counts those.
    """

    name = "tapping"

    def __init__(self, num_blocks: int) -> None:
        self.rows = np.full((num_blocks, BLOCK), -1)
        self.filled: dict[str, int] = {}
        self.foreign = 0

    def propose(self, batch: list[Sequence], limit: NDArray[np.int64]) -> Draft:
        draft = Draft.empty(len(batch), int(limit.max()))
        for row, (sequence, most) in enumerate(zip(batch, limit, strict=True)):
            if not most:
                continue
            foreign = self.fill(sequence)
            self.foreign += foreign
            right = RememberingModel.answer(sequence.token_ids.tolist(), int(most))
            draft.tokens[row, :most] = (np.array(right) + bool(foreign)) % VOCABULARY
            draft.lengths[row] = most
        return draft

    def fill(self, sequence: Sequence) -> int:
        """Write the rows that are missing; return how many of all are not this sequence's."""
        table, tokens = sequence.block_table, sequence.token_ids.tolist()
        own = np.array([following(tokens[: i + 2]) for i in range(len(tokens) - 1)])
        first = self.filled.get(sequence.request_id, sequence.cached_tokens or 0)
        for i in range(first, len(own)):
            self.rows[table[i // BLOCK], i % BLOCK] = own[i]
        self.filled[sequence.request_id] = len(own)
        return int((self.rows[table].ravel()[: len(own)] != own).sum())

    def observe(self, batch: list[Sequence], verdict: Verdict) -> None:
        """What was rejected has to be written again."""
        for sequence in batch:
            known = self.filled.get(sequence.request_id)
            if known is not None:
                self.filled[sequence.request_id] = min(known, len(sequence) - 1)


@pytest.mark.parametrize(
    ("lookahead_tokens", "cached", "foreign"),
    [(1, [0, 2 * BLOCK, BLOCK], False), (0, [0, 2 * BLOCK, 2 * BLOCK], True)],
)
def test_a_drafter_that_looks_ahead_loses_no_block_at_the_edge_of_what_is_cached(
    lookahead_tokens: int, cached: list[int], foreign: bool
) -> None:
    common = [3] * (2 * BLOCK)
    prompts = {"first": [*common, 5, 0], "same": [*common, 5, 1], "other": [*common, 6, 0]}
    outputs, seen = [], []
    for prefix_caching in (False, True):
        drafter = TappingDrafter(num_blocks=20)
        engine, recorder = engine_of(
            RememberingModel(num_blocks=20),
            drafter,
            3,
            prefix_caching=prefix_caching,
            lookahead_tokens=lookahead_tokens,
        )
        sequences = [request(prompt, 30, name) for name, prompt in prompts.items()]
        for sequence in sequences:
            engine.add(sequence)
            finish(engine)
        outputs.append([each.output_token_ids.tolist() for each in sequences])
        seen.append([each.cached_tokens for each in sequences])
        steps = [recorder.take(each).steps for each in sequences]
        drafted = sum(step.drafted for each in steps for step in each)
        accepted = sum(step.accepted for each in steps for step in each)
        spoilt = foreign and prefix_caching
        assert (drafter.foreign > 0) == spoilt
        assert (0 < accepted < drafted) if spoilt else (accepted == drafted > 0)
    assert outputs[0] == outputs[1] == [RememberingModel.answer(p, 30) for p in prompts.values()]
    assert seen == [[0, 0, 0], cached]


def test_k_follows_the_number_of_requests_in_a_step() -> None:
    ranges = BatchSizeRanges([[1, 1, 4], [2, 2, 1], [3, 9, 0]], num_speculative_tokens=4)
    engine, recorder = engine_of(
        CountingModel(), ScriptedDrafter(counting_on), 4, k_by_batch_size=ranges
    )
    sequences = [request([20 * place], 8 * (place + 1), f"r{place}") for place in range(3)]
    for sequence in sequences:
        engine.add(sequence)
    finish(engine)
    drafted = [{step.drafted for step in recorder.take(each).steps} for each in sequences]
    assert drafted[0] == {0}
    assert drafted[1] <= {0, 1}
    assert 1 in drafted[1]
    assert max(drafted[2]) == 4


def adaptive_engine(cost: CostCurve, share_right: float) -> tuple[Engine, StepRecorder, Sequence]:
    random = np.random.default_rng(2)

    def partly_right(sequence: Sequence) -> list[int]:
        right = RememberingModel.answer(sequence.token_ids.tolist(), 4)
        return [t if random.random() < share_right else (t + 1) % VOCABULARY for t in right]

    engine, recorder = engine_of(
        RememberingModel(num_blocks=20),
        ScriptedDrafter(partly_right),
        4,
        adaptive=AdaptiveVerification(cost, 4),
    )
    sequence = request([1, 2, 3], 900)
    engine.add(sequence)
    finish(engine)
    return engine, recorder, sequence


CHEAP = CostCurve.of({1: 1.0, 9: 1.02})
DEAR = CostCurve.of({1: 1.0, 9: 9.0})


@pytest.mark.parametrize(("cost", "share_right"), [(CHEAP, 0.9), (DEAR, 0.2)])
def test_what_is_verified_is_what_pays_and_the_answer_is_the_same(
    cost: CostCurve, share_right: float
) -> None:
    _, recorder, sequence = adaptive_engine(cost, share_right)
    assert sequence.output_token_ids.tolist() == RememberingModel.answer([1, 2, 3], 900)
    steps = recorder.take(sequence).steps
    late = steps[len(steps) // 2 :]
    drafted, trimmed = sum(s.drafted for s in late), sum(s.trimmed for s in late)
    assert drafted + trimmed == pytest.approx(4 * len(late), abs=12)  # to draft costs nothing here
    if cost is CHEAP:
        assert trimmed < 0.05 * drafted
    else:
        assert drafted < 0.05 * trimmed


class SteppedModel(CountingModel):
    """A step takes a second, and 0.3 more for each row after the first."""

    def forward(self, rows: Rows) -> torch.Tensor:
        self.clock.now_s += 1 + 0.3 * (len(rows.token_ids) - 1)
        return super().forward(rows)


def test_costs_follow_what_steps_take_but_for_those_that_read_a_prompt() -> None:
    model = SteppedModel()
    adaptive = AdaptiveVerification(CHEAP, 1)

    def now_and_then(sequence: Sequence) -> Iterable[int]:
        return counting_on(sequence) if len(sequence) % 3 else []

    drafter = ScriptedDrafter(now_and_then)
    engine, _ = engine_of(model, drafter, 1, clock=model.clock, adaptive=adaptive)
    for place in range(FIT_STEPS + 1):
        engine.add(request([20] * 9, 1, f"read {place}"))
        finish(engine)
    assert adaptive.cost is CHEAP
    engine.add(request([20], 800))
    finish(engine)
    assert adaptive.cost.step_s(2) / adaptive.cost.step_s(1) == pytest.approx(1.3, rel=0.05)
