"""Logged answers made by hand, and their steps by the rules themselves."""

from collections.abc import Sequence

import numpy as np

from outrider.engine.drafting.ngram import NgramDrafter
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.sequence import Sequence as Running
from outrider.records.arm import TieRule
from outrider.replay.answer import LoggedAnswer


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
    answer: LoggedAnswer, k: int, shortest: int, longest: int, tie: TieRule
) -> list[tuple[int, int]]:
    """(drafted, accepted) of each decode step, asking the engine's drafter before each."""
    drafter = NgramDrafter(k, shortest, longest, tie)
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
