"""Logged answers made by hand, and their steps by the rules themselves."""

from collections.abc import Sequence

import numpy as np

from outrider.acceptance.columns import OUTPUT_BANDS
from outrider.engine.drafting.ngram import NgramDrafter
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.sequence import Sequence as Running
from outrider.records.arm import TieRule
from outrider.replay.answer import LoggedAnswer
from outrider.replay.walk import Tally


def answer_of(
    prompt: Sequence[int],
    completion: Sequence[int],
    max_tokens: int | None = None,
    **told: object,
) -> LoggedAnswer:
    return LoggedAnswer(
        np.array(prompt, np.int32),
        np.array(completion, np.int32),
        max_tokens,
        **told,  # type: ignore[arg-type]
    )


def steps_by_the_drafter(
    answer: LoggedAnswer, k: int, shortest: int, longest: int, tie: TieRule, *, fill: bool = False
) -> list[tuple[int, int]]:
    """(drafted, accepted) of each decode step, asking the engine's drafter before each."""
    drafter = NgramDrafter(k, shortest, longest, tie, fill=fill)
    completion = [int(token) for token in answer.completion]
    room = len(completion) + k + 1 if answer.max_tokens is None else answer.max_tokens
    running = Running(
        "r", answer.prompt, max_tokens=room, sampling=Sampling.seeded(SamplingParameters())
    )
    running.append(completion[:1])
    steps = []
    while rest := completion[len(running.output_token_ids) :]:
        limit = np.array([min(k, running.room_tokens - 1)])
        draft = drafter.propose([running], limit)
        proposed = draft.tokens[0, : draft.lengths[0]].tolist()
        accepted = 0
        while accepted < min(len(proposed), len(rest)) and proposed[accepted] == rest[accepted]:
            accepted += 1
        steps.append((len(proposed), accepted))
        running.append(rest[: accepted + 1])
    return steps


def check_counts(told: Tally, answer: int, steps: list[tuple[int, int]]) -> None:
    """Compare what was counted of one answer with its steps."""
    k = told.k
    drafts = [step for step in steps if step[0]]
    assert told.decode_steps[answer] == len(steps)
    assert told.drafted[answer] == sum(drafted for drafted, _ in steps)
    for length in range(k + 1):
        assert told.histograms[answer, length] == sum(a == length for _, a in drafts)
    for position in range(1, k + 1):
        decided = sum(a >= position - 1 and d >= position for d, a in drafts)
        assert told.reached[answer, position:].sum() == decided
    at, bands = 1, [[0, 0] for _ in OUTPUT_BANDS]
    for drafted, accepted in steps:
        if drafted:
            band = max(i for i, begin in enumerate(OUTPUT_BANDS) if begin <= at)
            bands[band][0] += 1
            bands[band][1] += accepted
        at += accepted + 1
    assert [told.band_steps[answer].tolist(), told.band_accepted[answer].tolist()] == [
        [steps_in for steps_in, _ in bands],
        [accepted_in for _, accepted_in in bands],
    ]
