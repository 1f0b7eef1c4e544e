"""Steps by hand, on a target that counts."""

import pytest
from tests.engine.loops import (
    Clock,
    CountingModel,
    ScriptedDrafter,
    counted,
    counting_on,
    engine_of,
    finish,
    request,
)

from outrider.engine.drafting.none import NoDrafter
from outrider.engine.sequence import Sequence
from outrider.engine.verification.base import Verdict
from outrider.records.request import FinishReason


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
    engine, _ = engine_of(CountingModel(), NoDrafter(), 0)
    engine.add(request([8, 3], 5, stop_ids=[8]))
    assert [update.finish_reason for update in engine.step()] == [None]


def test_a_wrong_draft_costs_nothing_but_itself() -> None:
    # The second of every draft's tokens is wrong.
    drafter = ScriptedDrafter(lambda sequence: [int(sequence.token_ids[-1]) + 1, 99, 98])
    engine, recorder = engine_of(CountingModel(), drafter, 3)
    sequence = request([0], 9)
    engine.add(sequence)
    finish(engine)
    assert sequence.output_token_ids.tolist() == [*range(1, 10)]
    seen = [(step.drafted, step.accepted, step.emitted) for step in recorder.take(sequence).steps]
    assert seen == [(3, 1, 2), (3, 1, 2), (3, 1, 2), (1, 1, 2)]


def test_the_drafter_hears_every_verdict_once_the_tokens_are_appended() -> None:
    lengths: list[int] = []

    class Listening(ScriptedDrafter):
        def observe(self, batch: list[Sequence], verdict: Verdict) -> None:
            super().observe(batch, verdict)
            lengths.append(len(batch[0]))

    drafter = Listening(counting_on)
    engine, _ = engine_of(CountingModel(), drafter, 2)
    engine.add(request([0], 7))
    finish(engine)
    assert lengths == [2, 5, 8]
    assert [verdict.accepted.tolist() for verdict in drafter.verdicts] == [[0], [2], [2]]


def test_each_request_of_a_batch_has_its_own_step_record() -> None:
    drafter = ScriptedDrafter(
        lambda sequence: {"right": counting_on(sequence), "wrong": [99], "none": []}[
            sequence.request_id
        ]
    )
    engine, recorder = engine_of(CountingModel(), drafter, 3)
    batch = [request([5], 9, name) for name in ("right", "none", "wrong")]
    for sequence in batch:
        engine.add(sequence)
    engine.step()
    engine.step()
    steps = [recorder.take(sequence).steps for sequence in batch]
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
    engine, recorder = engine_of(model, drafter, 2, clock=clock)
    batch = [request([at], 9, f"r{at}") for at in range(2)]
    for sequence in batch:
        engine.add(sequence)
    engine.step()
    engine.step()
    clock.now_s += 100.0  # between two steps, so in none
    engine.step()
    for sequence in batch:
        recorded = recorder.take(sequence)
        assert recorded.prefill_s == 7.5
        times = [(s.draft_s, s.verify_s, s.step_s) for s in recorded.steps]
        assert times == [(2.0, 5.0, 7.5)] * 2
