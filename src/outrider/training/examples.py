"""Answers as the training takes them: windows of tokens, in batches of about equal work."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from outrider.training.answer import TargetAnswer

_SORTED_TOGETHER = 64
"""Examples that are put in order of length, so that little of a batch is padding."""


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """The end of a prompt and its answer: `tokens` [L], the answer from `start` on, at least 1.

    `top_ids` and `top_logprobs` [L - start, t] are the target's.
    """

    tokens: NDArray[np.int32]
    start: int
    top_ids: NDArray[np.int32]
    top_logprobs: NDArray[np.float32]

    @classmethod
    def of(cls, answer: TargetAnswer, window: int | None = None) -> Self:
        """The answer, up to `window` tokens with one of the prompt at least; None takes all."""
        room = len(answer.prompt) + len(answer.completion) if window is None else window
        completion = answer.completion[: room - 1]
        kept = min(len(answer.prompt), room - len(completion))
        prompt = answer.prompt[len(answer.prompt) - kept :]
        return cls(
            np.concatenate([prompt, completion]),
            kept,
            answer.top_ids[: len(completion)],
            answer.top_logprobs[: len(completion)],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Examples side by side, padded at their ends: `token_ids` [B, L].

    Row `predicting[n]`, counted through all examples, is to say `said[n]`, where the target saw
    `top_ids[n]` with probabilities `top` [N, t], which add up to 1.
    """

    token_ids: Tensor
    predicting: Tensor
    said: Tensor
    top_ids: Tensor
    top: Tensor

    @classmethod
    def of(cls, examples: Sequence[Example]) -> Self:
        """Lay out examples that have equally many top tokens."""
        longest = max(len(each.tokens) for each in examples)
        token_ids = np.zeros((len(examples), longest), np.int64)
        for row, each in enumerate(examples):
            token_ids[row, : len(each.tokens)] = each.tokens
        predicting = [
            row * longest + np.arange(each.start - 1, len(each.tokens) - 1)
            for row, each in enumerate(examples)
        ]
        said = [each.tokens[each.start :] for each in examples]
        logprobs = torch.from_numpy(np.concatenate([each.top_logprobs for each in examples]))
        return cls(
            torch.from_numpy(token_ids),
            torch.from_numpy(np.concatenate(predicting)),
            torch.from_numpy(np.concatenate(said).astype(np.int64)),
            torch.from_numpy(np.concatenate([each.top_ids for each in examples]).astype(np.int64)),
            logprobs.softmax(dim=-1),
        )

    def to(self, device: torch.device) -> "Batch":
        """The same on another device."""
        return Batch(
            self.token_ids.to(device),
            self.predicting.to(device),
            self.said.to(device),
            self.top_ids.to(device),
            self.top.to(device),
        )


def batches_from(
    examples: Sequence[Example], *, batch_tokens: int, seed: int, first: int = 0
) -> Iterator[Batch]:
    """Yield the batches of one epoch after the other, without end, from number `first` on.

    Each has at most `batch_tokens` rows, padding included, but for one example that has more. Which
    they are depends on the arguments alone.
    """
    number = 0
    for epoch in count():
        for places in _epoch([len(each.tokens) for each in examples], batch_tokens, (seed, epoch)):
            if number >= first:
                yield Batch.of([examples[place] for place in places])
            number += 1


def in_order(examples: Sequence[Example], batch_tokens: int) -> Iterator[list[int]]:
    """Yield the places of examples that make a batch, shortest first, each example once."""
    lengths = [len(each.tokens) for each in examples]
    yield from _filled(sorted(range(len(lengths)), key=lengths.__getitem__), lengths, batch_tokens)


def _epoch(lengths: list[int], batch_tokens: int, seed: tuple[int, int]) -> list[list[int]]:
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(lengths)).tolist()
    found: list[list[int]] = []
    for start in range(0, len(order), _SORTED_TOGETHER):
        near = sorted(order[start : start + _SORTED_TOGETHER], key=lengths.__getitem__)
        found += _filled(near, lengths, batch_tokens)
    return [found[place] for place in generator.permutation(len(found))]


def _filled(places: list[int], lengths: list[int], batch_tokens: int) -> Iterator[list[int]]:
    """Cut `places`, by ascending length, into batches."""
    batch: list[int] = []
    for place in places:
        if batch and (len(batch) + 1) * lengths[place] > batch_tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
