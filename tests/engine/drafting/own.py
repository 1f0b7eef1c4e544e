"""Drafters with small models of their own, and a model that is right only now and then."""

import numpy as np
import torch
from tests.engine.loops import VOCABULARY, RememberingModel

from outrider.engine.drafting.draft_model import ModelDrafter
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.drafting.parallel_draft_model import ParallelModelDrafter
from outrider.engine.drafting.sampling import DraftSampleMethod
from outrider.engine.models.base import Rows, TargetModel


class MostlyRight(RememberingModel):
    """What `RememberingModel` says, but for one token in five, after which it says another."""

    def forward(self, rows: Rows) -> torch.Tensor:
        logits = super().forward(rows)
        after = np.array(list(rows.token_ids))[list(rows.wanted)]
        wrong = torch.from_numpy(after % 5 == 2)
        return torch.where(wrong.unsqueeze(-1), logits.roll(1, dims=-1), logits)


def drafter_of(
    model: TargetModel,
    method: DraftSampleMethod = "greedy",
    *,
    max_rows: int = 1_000,
    prefix_caching: bool = False,
) -> ModelDrafter:
    return ModelDrafter(OwnModel(model, max_rows=max_rows, prefix_caching=prefix_caching), method)


def free(drafter: ModelDrafter | ParallelModelDrafter) -> bool:
    """Whether its cache holds nothing of any request."""
    pool = drafter.own.cache.pool
    return pool.free_blocks == pool.num_blocks


def random_prompt(count: int, seed: int = 0) -> list[int]:
    found: list[int] = np.random.default_rng(seed).integers(0, VOCABULARY, count).tolist()
    return found
