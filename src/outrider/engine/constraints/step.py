"""What the constraints of a batch make of one step."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.drafting.draft import Draft

if TYPE_CHECKING:  # which holds its own constraint
    from outrider.engine.sequence import Sequence as RunningSequence


@dataclass(frozen=True, slots=True, eq=False)
class ConstrainedStep:
    """The part of a draft that the constraints let stand, and what may come instead.

    `allowed` has for each constrained sequence, by its place in the batch, bool [d + 1, V]: which
    tokens may come after each beginning of its d tokens. `failures` says which cannot go on.
    """

    draft: Draft
    allowed: Mapping[int, NDArray[np.bool_]]
    failures: Mapping[int, str]

    @classmethod
    def of(cls, batch: "Sequence[RunningSequence]", draft: Draft, vocab_size: int) -> Self:
        """Cut each sequence's `draft` at the first token that its constraint forbids.

        Where the tokens were drawn from a q, q becomes what the constraint leaves of it. A position
        then has no token with the probability that q gave to forbidden ones, which depends on what
        came before it alone, and otherwise one drawn from the new q. So the output's distribution
        stays the target's.
        """
        allowed: dict[int, NDArray[np.bool_]] = {}
        failures: dict[int, str] = {}
        asked = [(row, each.constraint) for row, each in enumerate(batch) if each.constraint]
        if not asked:
            return cls(draft, allowed, failures)
        lengths = draft.lengths.copy()
        for row, constraint in asked:
            drafted = draft.tokens[row, : lengths[row]]
            rows = np.ones((len(drafted) + 1, vocab_size), np.bool_)
            lengths[row] = constraint.allow(drafted, rows)
            if constraint.failure is not None:
                failures[row] = constraint.failure
                lengths[row] = 0
            else:
                allowed[row] = rows[: lengths[row] + 1]
        return cls(_with_q(draft.cut(lengths), allowed), allowed, failures)

    def mask(self, logits: torch.Tensor, draft: Draft) -> torch.Tensor:
        """Return `logits` [sum(lengths + 1), V] with minus infinity wherever a token is forbidden.

        `draft` is the one to be verified, no longer than this one. Without constraints `logits`
        itself comes back, otherwise a copy.
        """
        if not self.allowed:
            return logits
        allowed = np.ones(logits.shape, np.bool_)
        counts = draft.lengths + 1
        first = counts.cumsum() - counts
        for row, rows in self.allowed.items():
            allowed[first[row] : first[row] + counts[row]] = rows[: counts[row]]
        return torch.where(torch.from_numpy(allowed).to(logits.device), logits, -math.inf)


def _with_q(draft: Draft, allowed: Mapping[int, NDArray[np.bool_]]) -> Draft:
    if draft.probabilities is None:
        return draft
    q = draft.probabilities.clone()
    for row, rows in allowed.items():
        length = int(draft.lengths[row])
        left = q[row, :length] * torch.from_numpy(rows[:length]).to(q.device)
        q[row, :length] = left / left.sum(dim=-1, keepdim=True)
    return replace(draft, probabilities=q)
