"""Drafters with small models of their own, and a model that is right only now and then."""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from tests.engine.loops import VOCABULARY, RememberingModel

from outrider.engine.drafting.base import DraftJudge
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
    judge: DraftJudge | None = None,
) -> ModelDrafter:
    own = OwnModel(model, max_rows=max_rows, prefix_caching=prefix_caching)
    return ModelDrafter(own, method, judge=judge)


@dataclass
class Judge:
    """Goes on with what the mask `on` [B] marks, with everything where it is None."""

    on: list[bool] | None = None
    asked: list[tuple[list[int], list[int]]] = field(default_factory=list)

    def going_on(
        self,
        log_odds: NDArray[np.float64],
        drafted: NDArray[np.int64],
        most: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        assert log_odds.shape == (len(drafted), drafted.max())
        self.asked.append((drafted.tolist(), most.tolist()))
        return most > drafted if self.on is None else np.array(self.on)


def free(drafter: ModelDrafter | ParallelModelDrafter) -> bool:
    """Whether its cache holds nothing of any request."""
    pool = drafter.own.cache.pool
    return pool.free_blocks == pool.num_blocks


def random_prompt(count: int, seed: int = 0) -> list[int]:
    found: list[int] = np.random.default_rng(seed).integers(0, VOCABULARY, count).tolist()
    return found
