"""What the step loop needs of a target model, whatever computes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from outrider.engine.kernels.arguments import SPAN
from outrider.engine.models.config import DecoderConfig

BLOCK_TOKENS = SPAN
"""Tokens in one block of the cache: what the CPU kernels score at once."""


def blocks_for(tokens: int) -> int:
    """Return how many blocks hold `tokens` tokens."""
    return -(-tokens // BLOCK_TOKENS)


@dataclass(frozen=True, slots=True)
class Rows:
    """A ragged batch of R rows for one forward pass over S sequences.

    `sequences` [R] names the sequence of each row, an index into `block_tables` [S]; the rows of a
    sequence are adjacent and ascend in position. Position p of a sequence is cached in block
    `table[p // BLOCK_TOKENS]`. Sequences may share blocks; they write only to blocks of their own.
    `wanted` names the rows whose logits are needed, in ascending order.
    """

    token_ids: Sequence[int]
    positions: Sequence[int]
    sequences: Sequence[int]
    block_tables: Sequence[Sequence[int]]
    wanted: Sequence[int]


class TargetModel(Protocol):
    """A decoder with a cache of `num_blocks` blocks, for sequences of up to `max_length` tokens."""

    config: DecoderConfig
    num_blocks: int
    max_length: int
    logit_tolerance: float
    """How far rounding may move a logit between batch shapes; 0 where it cannot."""

    def forward(self, rows: Rows) -> torch.Tensor:
        """Extends the cache by `rows` and returns float32 logits [len(wanted), V].

        The logits hold until the next call. A row overwrites whatever its block held at its
        position; rejected drafts need no clean-up.
        """
        ...
