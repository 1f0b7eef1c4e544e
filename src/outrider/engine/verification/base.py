"""What every verifier offers, and the form of its answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import Sampling


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What became of a draft.

    `accepted` is int64 [B], the length of each accepted prefix; `emitted` holds for each
    sequence int32 [accepted + 1], the accepted tokens and the bonus token.
    """

    accepted: NDArray[np.int64]
    emitted: list[NDArray[np.int32]]


class Verifier(Protocol):
    """Judges a draft by the target's logits; an empty draft is plain decoding."""

    @property
    def name(self) -> str:
        """The rule, as a setting names it."""

    @property
    def lossless(self) -> bool:
        """Whether the output is exactly the target's: same tokens if greedy, else same law.

        Whoever prints figures of a rule that is not lossless says so beside them.
        """

    def verify(self, logits: torch.Tensor, draft: Draft, sampling: Sequence[Sampling]) -> Verdict:
        """Judge `draft` by `logits` [sum(lengths + 1), V], one `sampling` per sequence.

        A sequence with d drafted tokens owns d + 1 consecutive rows: row i, from 0, judges its
        token i + 1, and the last row gives the bonus token when all were accepted.
        """
