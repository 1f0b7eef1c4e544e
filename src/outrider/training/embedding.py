"""The target's embedding in fewer dimensions."""

from dataclasses import dataclass

import torch
from torch import Tensor

SEEN_NOWHERE = 0.1
"""What a token weighs that no answer has, in occurrences."""


@dataclass(frozen=True, slots=True, eq=False)
class ReducedEmbedding:
    """Rows [V, d], and the share of the target's squared lengths that they keep, in [0, 1]."""

    rows: Tensor
    kept_share: float


def reduced_embedding(embedding: Tensor, counts: Tensor, size: int) -> ReducedEmbedding:
    """Project rows [V, H] on the `size` directions that keep most of them.

    A row weighs as often as its token occurs (`counts` [V]): a singular value decomposition of the
    weighted rows, truncated, by way of the H x H matrix of their products. With `size` above H the
    rest of each row is 0.
    """
    wide = embedding.double()
    weights = (counts.double() + SEEN_NOWHERE).unsqueeze(1)
    values, directions = torch.linalg.eigh(wide.T @ (wide * weights))
    chosen = directions.flip(1)[:, :size]
    rows = torch.zeros(len(wide), size, dtype=torch.float32)
    rows[:, : chosen.shape[1]] = (wide @ chosen).float()
    kept = float(values.flip(0)[:size].sum() / values.sum())
    return ReducedEmbedding(rows, min(kept, 1.0))
