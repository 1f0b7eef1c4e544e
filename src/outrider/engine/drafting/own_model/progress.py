"""How far a draft model has come with one sequence."""

import numpy as np
from numpy.typing import NDArray

from outrider.engine.sequence import Sequence


class Progress:
    """The blocks that a draft model's cache holds for `sequence`, and what is in them.

    Its first `computed_tokens` tokens, and after them `guessed`, which were drafted and computed
    before anybody knew whether the sequence would go on with them.
    """

    __slots__ = (
        "block_names",
        "block_table",
        "computed_tokens",
        "guessed",
        "offered_blocks",
        "sequence",
    )

    def __init__(self, sequence: Sequence) -> None:
        self.sequence = sequence
        self.block_table: list[int] = []
        self.block_names: list[bytes] = []
        self.offered_blocks = 0
        self.computed_tokens = 0
        self.guessed: list[int] = []

    def __len__(self) -> int:
        return len(self.sequence)

    @property
    def token_ids(self) -> NDArray[np.int32]:
        """Prompt and output of the sequence so far."""
        return self.sequence.token_ids

    @property
    def asks_prompt_logprobs(self) -> bool:
        """Nobody asks them of a draft model."""
        return False

    @property
    def missing_tokens(self) -> int:
        """How many known tokens are still to be computed, at least 1 once it is settled."""
        return len(self.sequence) - self.computed_tokens

    def settle(self) -> None:
        """Count the guessed tokens that the sequence went on with as computed, drop the others.

        Its last token is left to be computed, because its logits are needed.
        """
        went_on = self.sequence.token_ids[self.computed_tokens : -1].tolist()
        for guess, token in zip(self.guessed, went_on, strict=False):
            if guess != token:
                break
            self.computed_tokens += 1
        self.guessed.clear()
