"""Forward passes of a target and a draft model, and what one of so many rows typically takes."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.adaptive.profiling import typical
from outrider.engine.models.base import BLOCK_TOKENS, Rows, TargetModel, blocks_for

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 17, 24, 32, 33, 48, 64, 96, 144)
ROUNDS = 40
"""How often each size is timed."""
CONTEXT_TOKENS = 192


class Pass(NamedTuple):
    """A pass of `model`."""

    model: str
    rows: int
    seconds: float


@dataclass
class TimedModel:
    """A model called `name` that adds its passes to those `seen`."""

    model: TargetModel
    name: str
    seen: list[Pass]

    def __post_init__(self) -> None:
        self.config = self.model.config
        self.num_blocks, self.max_length = self.model.num_blocks, self.model.max_length
        self.logit_tolerance = self.model.logit_tolerance

    def forward(self, rows: Rows) -> torch.Tensor:
        """See `TargetModel.forward`."""
        start = time.perf_counter()
        logits = self.model.forward(rows)
        self.seen.append(Pass(self.name, len(rows.token_ids), time.perf_counter() - start))
        return logits


class Sizes(NamedTuple):
    """Numbers of rows, ascending, and the seconds of a pass of each."""

    rows: NDArray[np.int64]
    seconds: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TypicalPasses:
    """What a pass takes by model and rows."""

    by_model: Mapping[str, Sizes]

    @classmethod
    def timed(cls, models: Mapping[str, TargetModel]) -> Self:
        """Time passes of all `models` in turn, so that each finds the caches as others leave them.

        In rounds of all sizes, each brought to one speed. Overwrites the first blocks of their
        caches.
        """
        names, sizes = list(models), np.array(SIZES, np.int64)
        taken = np.zeros((ROUNDS + 1, len(names) * len(sizes)))  # the first warms up
        for times in taken:
            for place in range(len(times)):
                size, model = divmod(place, len(names))
                times[place] = _seconds(models[names[model]], SIZES[size])
        found = typical(taken[1:]).reshape(len(sizes), len(names))
        return cls({name: Sizes(sizes, found[:, place]) for place, name in enumerate(names)})

    def total_s(self, passes: Iterable[Pass]) -> float:
        """Return what `passes` would have taken together if each had been typical."""
        return sum(float(np.interp(each.rows, *self.by_model[each.model])) for each in passes)


def _seconds(model: TargetModel, count: int) -> float:
    """What a pass of `count` rows takes, each with some context."""
    blocks = range(blocks_for(CONTEXT_TOKENS + count))
    assert len(blocks) * BLOCK_TOKENS <= min(model.max_length, model.num_blocks * BLOCK_TOKENS)
    positions = range(CONTEXT_TOKENS, CONTEXT_TOKENS + count)
    rows = Rows([1] * count, positions, [0] * count, [blocks], range(count))
    start = time.perf_counter()
    model.forward(rows)
    return time.perf_counter() - start
