"""Which sequence holds which blocks of the cache."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from outrider.engine.caching.naming import further_names
from outrider.engine.caching.pool import BlockPool
from outrider.engine.models.base import BLOCK_TOKENS, blocks_for


class BlockHolder(Protocol):
    """What holds blocks: a running sequence, or what a draft model has computed of one.

    The fields are as in `Sequence`; all but `computed_tokens` are the cache's to change.
    """

    block_table: list[int]
    block_names: list[bytes]
    offered_blocks: int
    computed_tokens: int

    @property
    def token_ids(self) -> NDArray[np.int32]:
        """All tokens that it has so far."""

    @property
    def asks_prompt_logprobs(self) -> bool:
        """Whether every prompt token has to be computed for its sake."""

    def __len__(self) -> int: ...


class BlockCache:
    """Gives sequences blocks for their keys and values, and lets equal beginnings share them.

    With `prefix_caching` a new sequence starts from the blocks that an earlier one filled with the
    same tokens. `lookahead_tokens` is how far beyond a block its drafter's share of it looks.
    """

    def __init__(
        self, num_blocks: int, *, prefix_caching: bool = False, lookahead_tokens: int = 0
    ) -> None:
        self.pool = BlockPool(num_blocks)
        self._prefix_caching = prefix_caching
        self._lookahead_tokens = lookahead_tokens

    def begin(self, sequence: BlockHolder) -> None:
        """Give a sequence that holds nothing the blocks that are there for it already.

        At least its last token stays to be computed, because its logits are needed.
        """
        assert not sequence.block_table, "a sequence begins with nothing"
        if self._prefix_caching:
            self._name_blocks(sequence)
        if sequence.asks_prompt_logprobs:
            return  # for which every prompt token is computed
        for name in sequence.block_names[: (len(sequence) - 1) // BLOCK_TOKENS]:
            block = self.pool.find(name)
            if block is None:
                break
            self.pool.share(block)
            sequence.block_table.append(block)
        sequence.offered_blocks = len(sequence.block_table)
        sequence.computed_tokens = sequence.offered_blocks * BLOCK_TOKENS

    def grow(self, sequence: BlockHolder, tokens: int) -> bool:
        """Make room for the first `tokens` tokens; False, and nothing changed, if there is none."""
        missing = blocks_for(tokens) - len(sequence.block_table)
        if missing > self.pool.free_blocks:
            return False
        sequence.block_table += [self.pool.take() for _ in range(missing)]
        return True

    def keep(self, sequence: BlockHolder) -> None:
        """Let others find the blocks that the sequence has filled with tokens that stay."""
        if not self._prefix_caching:
            return
        self._name_blocks(sequence)
        full = sequence.computed_tokens // BLOCK_TOKENS
        done = min(full, len(sequence.block_names))
        for place in range(sequence.offered_blocks, done):
            self.pool.name(sequence.block_table[place], sequence.block_names[place])
        sequence.offered_blocks = done

    def release(self, sequence: BlockHolder) -> None:
        """Take all blocks back; what they hold can still be found."""
        self.pool.release(sequence.block_table)
        sequence.block_table = []
        sequence.computed_tokens = 0
        sequence.offered_blocks = 0

    def _name_blocks(self, sequence: BlockHolder) -> None:
        sequence.block_names += further_names(
            sequence.token_ids,
            sequence.block_names,
            lookahead_tokens=self._lookahead_tokens,
        )
