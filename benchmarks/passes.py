"""Forward passes of a target and a draft model, and what one of so many rows and tokens takes."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.adaptive.cost_curve import CONTEXT_TOKENS
from outrider.engine.adaptive.profiling import (
    MANY_REQUESTS,
    many_requests,
    one_request,
    typical,
)
from outrider.engine.models.base import Rows, TargetModel

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 17, 24, 32, 33, 48, 64, 96, 144)
ROUNDS = 40
"""How often each size is timed."""


class Pass(NamedTuple):
    """A pass of `model`, over `cached_tokens` of all its requests together."""

    model: str
    rows: int
    cached_tokens: int
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
        seconds = time.perf_counter() - start
        ends = dict(zip(rows.sequences, rows.positions, strict=True))
        self.seen.append(
            Pass(self.name, len(rows.token_ids), sum(ends.values()) + len(ends), seconds)
        )
        return logits


class Sizes(NamedTuple):
    """Numbers of rows, ascending, and the seconds of a pass of each with `CONTEXT_TOKENS`.

    And of each token more that is cached.
    """

    rows: NDArray[np.int64]
    seconds: NDArray[np.float64]
    cached_token_s: float


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
        names = list(models)
        steps = {
            name: [
                *(one_request(model, size, model.max_length) for size in SIZES),
                many_requests(model, MANY_REQUESTS),
            ]
            for name, model in models.items()
        }
        taken = np.zeros((ROUNDS + 1, len(names) * (len(SIZES) + 1)))  # the first warms up
        for times in taken:
            for place in range(len(times)):
                step, which = divmod(place, len(names))
                name = names[which]
                start = time.perf_counter()
                models[name].forward(steps[name][step])
                times[place] = time.perf_counter() - start
        found = typical(taken[1:]).reshape(-1, len(names))
        beside, further_tokens = SIZES.index(MANY_REQUESTS), (MANY_REQUESTS - 1) * CONTEXT_TOKENS
        return cls(
            {
                name: Sizes(
                    np.array(SIZES),
                    of_model[:-1],
                    float(of_model[-1] - of_model[beside]) / further_tokens,
                )
                for name, of_model in zip(names, found.T, strict=True)
            }
        )

    def total_s(self, passes: Iterable[Pass]) -> float:
        """Return what `passes` would have taken together if each had been typical."""
        return sum(self._seconds(each) for each in passes)

    def _seconds(self, one: Pass) -> float:
        rows, seconds, cached_token_s = self.by_model[one.model]
        further_tokens = one.cached_tokens - CONTEXT_TOKENS
        return float(np.interp(one.rows, rows, seconds)) + cached_token_s * further_tokens
