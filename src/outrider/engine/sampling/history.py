"""What a row of logits comes after, and the form of a rule that depends on it."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The tokens before the d + 1 rows of one sequence with d drafted tokens.

    Row i comes after `prompt`, `output` and `drafted[:i]`, all int32 token ids. A drafted -1 is a
    token that the drafter took back; the rows after it are of no use to anybody.
    """

    prompt: NDArray[np.int32]
    output: NDArray[np.int32]
    drafted: NDArray[np.int32]


class Rule(Protocol):
    """One request's change to its logits, before temperature and truncation.

    A rule may remember what it has seen of its request; it catches up from the history alone.
    """

    def apply(self, rows: torch.Tensor, history: History) -> None:
        """Change `rows` [d + 1, V], float32, in place."""
