"""What the step loop needs of a target model, whatever computes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from outrider.engine.models.config import DecoderConfig


@dataclass(frozen=True, slots=True)
class Rows:
    """A ragged batch of R rows for one forward pass, the rows of a request in ascending position.

    `wanted` names the rows whose logits are needed, in ascending order.
    """

    token_ids: Sequence[int]
    positions: Sequence[int]
    slots: Sequence[int]
    wanted: Sequence[int]


class TargetModel(Protocol):
    """A decoder with a cache of its own: `slots` requests of up to `capacity` tokens each."""

    config: DecoderConfig
    capacity: int
    dtype: torch.dtype
    """Type of the stored weights."""
    logit_tolerance: float
    """How far rounding may move a logit between batch shapes; 0 where it cannot."""

    def forward(self, rows: Rows) -> torch.Tensor:
        """Extends the cache by `rows` and returns float32 logits [len(wanted), V].

        The logits hold until the next call. A row overwrites whatever its slot held at its
        position; rejected drafts need no clean-up.
        """
        ...
