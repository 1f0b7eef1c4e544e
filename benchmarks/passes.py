"""Forward passes of a target and a draft model, and what one of so many rows typically takes."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.models.base import Rows, TargetModel

FEWEST_PASSES = 10
"""So many of one size have a typical time; of a rarer size it lies between its neighbours'."""


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
    """What a pass takes by model and rows: the median of many."""

    by_model: Mapping[str, Sizes] = field(default_factory=dict)

    @classmethod
    def of(cls, passes: Iterable[Pass]) -> Self:
        """Take the medians of `passes`; of sizes with too few only where a model has no other."""
        seen: dict[str, dict[int, list[float]]] = {}
        for each in passes:
            seen.setdefault(each.model, {}).setdefault(each.rows, []).append(each.seconds)
        found = {}
        for model, by_rows in seen.items():
            common = [rows for rows, taken in by_rows.items() if len(taken) >= FEWEST_PASSES]
            sizes = sorted(common or by_rows)
            medians = [float(np.median(by_rows[rows])) for rows in sizes]
            found[model] = Sizes(np.array(sizes, np.int64), np.array(medians))
        return cls(found)

    def total_s(self, passes: Iterable[Pass]) -> float:
        """Return what `passes` would have taken together if each had been typical."""
        return sum(float(np.interp(each.rows, *self.by_model[each.model])) for each in passes)
