"""Some answers of a log in one buffer, for compiled passes over all of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outrider.replay.answer import LoggedAnswer, TokenIds

NO_LIMIT = np.iinfo(np.int64).max
"""The `max_tokens` of an answer that does not tell."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerBatch:
    """N answers in the order of the log.

    `tokens` [T] holds each prompt with its completion behind it; those of answer n lie from
    `starts[n]` up to `starts[n + 1]`, its completion from `outputs[n]` on. `max_tokens` [N] is
    `NO_LIMIT` where unknown.
    """

    answers: tuple[LoggedAnswer, ...]
    tokens: TokenIds
    starts: NDArray[np.int64]
    outputs: NDArray[np.int64]
    max_tokens: NDArray[np.int64]

    @classmethod
    def of(cls, answers: Sequence[LoggedAnswer]) -> "AnswerBatch":
        """Lay out at least one answer."""
        parts = [part for each in answers for part in (each.prompt, each.completion)]
        edges = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
        limits = [NO_LIMIT if each.max_tokens is None else each.max_tokens for each in answers]
        return cls(
            answers=tuple(answers),
            tokens=np.concatenate(parts).astype(np.int32, copy=False),
            starts=edges[::2].astype(np.int64),
            outputs=edges[1::2].astype(np.int64),
            max_tokens=np.array(limits, np.int64),
        )

    @property
    def completion_lengths(self) -> NDArray[np.int64]:
        """C of each answer, [N]."""
        return self.starts[1:] - self.outputs
