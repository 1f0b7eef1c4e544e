from collections.abc import Callable, Collection
from collections.abc import Sequence as Ordered
from dataclasses import replace
from typing import Protocol

import numpy as np
import pytest
import torch

from outrider.bench.answering import Answerer
from outrider.bench.comparison_run import WARMUP_PROMPTS, ComparisonRun, Keeper, planned_requests
from outrider.engine.drafting.draft import Draft
from outrider.engine.models.base import Rows, TargetModel
from outrider.engine.sampling import Sampling
from outrider.engine.sequence import Sequence
from outrider.engine.verification.base import Verdict
from outrider.engine.verification.standard import StandardVerifier
from outrider.records.arm import Arm
from outrider.records.divergence import Divergence
from outrider.records.evidence import RequestKey
from outrider.records.prompt import PromptRecord
from outrider.records.request import Phase, RequestRecord
from outrider.records.run import RunSettings

REPEATS = 2


class Kept(Keeper, Protocol):
    requests: list[RequestRecord]
    divergences: list[Divergence]


@pytest.fixture
def settings(arms: tuple[Arm, ...]) -> RunSettings:
    return RunSettings(
        model="toy",
        workload="three",
        workload_sha256="",
        arms=arms,
        repeats=REPEATS,
        seed=5,
        temperature=0.0,
        dtype=None,
        threads=None,
        max_tokens=None,
        smoke=False,
    )


RunIt = Callable[..., ComparisonRun]


@pytest.fixture
def comparison(
    settings: RunSettings,
    prompts: tuple[PromptRecord, ...],
    answerer: Answerer,
    keeper: Kept,
    ticks: Callable[[], float],
) -> RunIt:
    """A run over the toy target; keywords change it."""

    def make(
        advance: Callable[[], None] = lambda: None,
        time_limit_s: float | None = None,
        earlier: Collection[RequestRecord] = (),
        settings: RunSettings = settings,
    ) -> ComparisonRun:
        return ComparisonRun(
            settings=settings,
            prompts=prompts,
            answerer=answerer,
            keeper=keeper,
            clock=ticks,
            advance=advance,
            time_limit_s=time_limit_s,
            earlier=earlier,
        )

    return make


def keys(requests: Collection[RequestRecord], phase: Phase = Phase.MEASURED) -> list[RequestKey]:
    return [
        RequestKey(each.arm, each.prompt_id, each.repeat)
        for each in requests
        if each.phase is phase
    ]


def measured(keeper: Kept) -> list[RequestRecord]:
    return [each for each in keeper.requests if each.phase is Phase.MEASURED]


def interrupt_after(count: int) -> Callable[[], None]:
    """What `advance` may be: Ctrl-C when `count` requests have been measured."""
    done = iter(range(1, count))

    def advance() -> None:
        if next(done, None) is None:
            raise KeyboardInterrupt

    return advance


def test_a_complete_run_measures_every_request_once(
    comparison: RunIt, keeper: Kept, settings: RunSettings, prompts: tuple[PromptRecord, ...]
) -> None:
    assert comparison().run()
    expected = {
        RequestKey(arm.name, prompt.prompt_id, repeat)
        for arm in settings.arms
        for prompt in prompts
        for repeat in range(REPEATS)
    }
    found = keys(keeper.requests)
    assert set(found) == expected
    assert len(found) == len(expected) == planned_requests(settings, prompts)


def test_progress_is_told_once_for_every_measured_request(
    comparison: RunIt, settings: RunSettings, prompts: tuple[PromptRecord, ...]
) -> None:
    told: list[None] = []
    comparison(advance=lambda: told.append(None)).run()
    assert len(told) == planned_requests(settings, prompts)


def test_warm_up_comes_first_covers_every_arm_and_is_marked(
    comparison: RunIt, keeper: Kept, settings: RunSettings, prompts: tuple[PromptRecord, ...]
) -> None:
    comparison().run()
    phases = [request.phase for request in keeper.requests]
    count = WARMUP_PROMPTS * len(settings.arms)
    assert phases == [Phase.WARMUP] * count + [Phase.MEASURED] * (len(phases) - count)
    assert {(key.arm, key.prompt_id) for key in keys(keeper.requests, Phase.WARMUP)} == {
        (arm.name, prompt.prompt_id) for arm in settings.arms for prompt in prompts[:WARMUP_PROMPTS]
    }


def test_arms_take_turns_on_every_prompt(
    comparison: RunIt, keeper: Kept, arms: tuple[Arm, ...]
) -> None:
    comparison().run()
    found = keys(keeper.requests)
    for start in range(0, len(found), len(arms)):
        block = found[start : start + len(arms)]
        assert len({(key.prompt_id, key.repeat) for key in block}) == 1
        assert {key.arm for key in block} == {arm.name for arm in arms}


def test_an_engine_that_works_leaves_no_divergence(comparison: RunIt, keeper: Kept) -> None:
    comparison().run()
    assert keeper.divergences == []


@pytest.mark.parametrize("count", [1, 2, 4, 5, 11, 17])
def test_an_interrupted_run_goes_on_where_it_was(
    count: int, comparison: RunIt, keeper: Kept
) -> None:
    comparison().run()
    whole = keys(keeper.requests)
    keeper.requests.clear()

    with pytest.raises(KeyboardInterrupt):
        comparison(advance=interrupt_after(count)).run()
    earlier = measured(keeper)
    assert keys(earlier) == whole[:count]

    keeper.requests.clear()
    assert comparison(earlier=earlier).run()
    assert keys(keeper.requests) == whole[count:]


def test_a_resumed_run_warms_up_anew(comparison: RunIt, keeper: Kept) -> None:
    with pytest.raises(KeyboardInterrupt):
        comparison(advance=interrupt_after(3)).run()
    earlier = measured(keeper)
    keeper.requests.clear()
    comparison(earlier=earlier).run()
    assert keeper.requests[0].phase is Phase.WARMUP


def test_a_complete_run_resumed_measures_nothing(comparison: RunIt, keeper: Kept) -> None:
    comparison().run()
    earlier = measured(keeper)
    keeper.requests.clear()
    assert comparison(earlier=earlier).run()
    assert keeper.requests == []


def test_the_time_limit_ends_a_run_between_prompts(
    comparison: RunIt, keeper: Kept, arms: tuple[Arm, ...]
) -> None:
    comparison().run()
    whole = keys(keeper.requests)
    keeper.requests.clear()

    # A second passes at each of the thousands of readings that this run makes of the clock.
    assert not comparison(time_limit_s=1000.0).run()
    found = keys(keeper.requests)
    assert 0 < len(found) < len(whole)
    assert len(found) % len(arms) == 0
    assert found == whole[: len(found)]


def test_a_run_within_its_time_limit_is_complete(comparison: RunIt, keeper: Kept) -> None:
    assert comparison(time_limit_s=1e9).run()
    assert len(measured(keeper)) == 18


class Gullible(StandardVerifier):
    """Accepts whatever is drafted."""

    def verify(self, logits: torch.Tensor, draft: Draft, sampling: Ordered[Sampling]) -> Verdict:
        verdict = super().verify(logits, draft, sampling)
        emitted = [
            np.append(tokens[:length], judged[-1:])
            for tokens, length, judged in zip(
                draft.tokens, draft.lengths, verdict.emitted, strict=True
            )
        ]
        return Verdict(draft.lengths, emitted)


@pytest.fixture
def gullible(answerer: Answerer) -> Answerer:
    """The answerer with a verifier that is wrong whenever it should reject."""
    for engine in answerer._engines.values():
        engine.loop = replace(engine.loop, verifier=Gullible())
    return answerer


def test_a_wrong_verifier_is_found_in_every_arm_that_speculates(
    gullible: Answerer, comparison: RunIt, keeper: Kept, arms: tuple[Arm, ...]
) -> None:
    assert comparison().run()
    assert {found.arm for found in keeper.divergences} == {arm.name for arm in arms[1:]}
    assert {found.kind for found in keeper.divergences} == {"real"}
    outputs = {
        RequestKey(each.arm, each.prompt_id, each.repeat): each.output_token_ids
        for each in measured(keeper)
    }
    for found in keeper.divergences:
        plain = outputs[RequestKey("none", found.prompt_id, found.repeat)]
        other = outputs[RequestKey(found.arm, found.prompt_id, found.repeat)]
        assert plain[: found.position] == other[: found.position]
        assert plain[found.position] == found.expected_token_id
        assert other[found.position] == found.actual_token_id
        assert found.top2_gap == 1.0


class Doubling:
    """A drafter that only ever drafts the last token again."""

    name = "doubling"

    def propose(
        self, batch: list[Sequence], limit: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> Draft:
        draft = Draft.empty(len(batch), 4)
        draft.lengths[:] = np.minimum(limit, 4)
        for row, sequence in enumerate(batch):
            draft.tokens[row, : draft.lengths[row]] = sequence.token_ids[-1]
        return draft

    def observe(self, batch: list[Sequence], verdict: Verdict) -> None:
        pass


def test_a_drafter_that_is_always_wrong_changes_no_output(
    answerer: Answerer, comparison: RunIt, keeper: Kept
) -> None:
    for engine in answerer._engines.values():
        if engine.loop.k:
            engine.loop = replace(engine.loop, drafter=Doubling())
    assert comparison().run()
    steps = [step for each in measured(keeper) if each.arm != "none" for step in each.steps]
    assert sum(step.drafted for step in steps) > 0
    assert sum(step.accepted for step in steps) == 0
    assert keeper.divergences == []


class Wavering:
    """A target whose best two tokens change places where many rows are computed at once."""

    logit_tolerance = 1.0

    def __init__(self, target: TargetModel) -> None:
        self._target = target
        self.config = target.config
        self.num_blocks, self.max_length = target.num_blocks, target.max_length

    def forward(self, rows: Rows) -> torch.Tensor:
        logits = self._target.forward(rows)
        if len(rows.wanted) > 1:
            logits[logits == 1.0] = 3.0
        return logits


def test_a_tie_that_rounding_decides_is_no_error(
    answerer: Answerer, toy: TargetModel, comparison: RunIt, keeper: Kept
) -> None:
    answerer.model = Wavering(toy)
    for engine in answerer._engines.values():
        engine.loop = replace(engine.loop, model=answerer.model)
    assert comparison().run()
    assert {found.kind for found in keeper.divergences} == {"near-tie"}


def test_an_interrupt_does_not_skip_the_audit(
    gullible: Answerer, comparison: RunIt, keeper: Kept, arms: tuple[Arm, ...]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        comparison(advance=interrupt_after(len(arms))).run()
    assert {found.arm for found in keeper.divergences} == {arm.name for arm in arms[1:]}


def test_what_an_earlier_session_left_unaudited_is_audited(
    gullible: Answerer, comparison: RunIt, keeper: Kept
) -> None:
    comparison().run()
    expected = list(keeper.divergences)
    assert expected
    keeper.divergences.clear()
    comparison(earlier=measured(keeper)).run()
    assert keeper.divergences == expected


def test_a_block_begun_in_one_session_and_ended_in_another_is_audited(
    gullible: Answerer, comparison: RunIt, keeper: Kept
) -> None:
    comparison().run()
    whole = measured(keeper)
    expected = list(keeper.divergences)
    for count in (1, 2):
        keeper.divergences.clear()
        comparison(earlier=whole[:count]).run()
        assert keeper.divergences == expected


def test_above_temperature_zero_outputs_may_differ(
    gullible: Answerer, comparison: RunIt, keeper: Kept, settings: RunSettings
) -> None:
    assert comparison(settings=replace(settings, temperature=1.0)).run()
    assert keeper.divergences == []


def test_repeats_at_a_temperature_are_different_answers(
    comparison: RunIt, keeper: Kept, settings: RunSettings
) -> None:
    comparison(settings=replace(settings, temperature=1.0)).run()
    outputs = {
        RequestKey(each.arm, each.prompt_id, each.repeat): each.output_token_ids
        for each in measured(keeper)
    }
    assert outputs[RequestKey("none", "first", 0)] != outputs[RequestKey("none", "first", 1)]
