"""What a draft model would have accepted of answers that are known, without an engine.

A greedy draft goes on for as long as it says what the target said. Then its own context is the
answer itself, so its likeliest token at each position of the answer tells every run of accepted
tokens, wherever a step begins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.acceptance.histogram import AcceptanceHistogram
from outrider.training.draft import DraftNetwork
from outrider.training.examples import Batch, Example, in_order


@dataclass(frozen=True, slots=True)
class Estimate:
    """Acceptance on answers held out: `agreement` is the share of tokens the draft says too."""

    agreement: float
    histogram: AcceptanceHistogram


class HeldOut:
    """Answers that are not trained on, by whole prompts where `window` allows, and their limits."""

    def __init__(self, examples: Sequence[Example], max_tokens: Sequence[int], k: int) -> None:
        self._examples = examples
        self._max_tokens = max_tokens
        self._k = k

    def estimate(self, draft: DraftNetwork, batch_tokens: int) -> Estimate:
        """Let the draft model, as it is, read all answers once."""
        hits = _hits(draft, self._examples, batch_tokens)
        accepted: list[int] = []
        drafted: list[int] = []
        for said, most in zip(hits, self._max_tokens, strict=True):
            for taken, length in walk(said, self._k, most):
                accepted.append(taken)
                drafted.append(length)
        histogram = AcceptanceHistogram.from_steps(
            np.array(accepted, np.int64), np.array(drafted, np.int64), self._k
        )
        return Estimate(float(np.concatenate(hits).mean()), histogram)


def walk(hits: NDArray[np.bool_], k: int, max_tokens: int) -> list[tuple[int, int]]:
    """The steps of an answer with a draft in each, as (accepted, drafted).

    `hits` [C] says which of its tokens the draft model would say too. The first token comes from
    the prefill. A draft is never longer than what `max_tokens` leaves beside the target's own.

    >>> walk(np.array([False, True, True, False, True]), 2, 6)
    [(2, 2), (1, 1)]
    """
    steps = []
    place = 1
    while place < len(hits) and (length := min(k, max_tokens - place - 1)) > 0:
        ahead = hits[place : place + length]
        accepted = len(ahead) if ahead.all() else int(ahead.argmin())
        steps.append((accepted, length))
        place += accepted + 1
    return steps


@torch.no_grad()
def _hits(
    draft: DraftNetwork, examples: Sequence[Example], batch_tokens: int
) -> list[NDArray[np.bool_]]:
    device = draft.model.embed_tokens.weight.device
    found: list[NDArray[np.bool_]] = [np.zeros(0, bool)] * len(examples)
    for places in in_order(examples, batch_tokens):
        batch = Batch.of([examples[place] for place in places]).to(device)
        right = draft(batch.token_ids, batch.predicting).argmax(dim=1) == batch.said
        sizes = [len(examples[place].tokens) - examples[place].start for place in places]
        for place, said in zip(places, right.cpu().split(sizes), strict=True):
            found[place] = said.numpy()
    return found
