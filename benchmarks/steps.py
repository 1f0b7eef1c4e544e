"""Time of one step of the embedded engine against the rows that it judges, and its floor."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from outrider.engine.kernels.memory import aligned_zeros
from outrider.engine.models.base import Rows, TargetModel, blocks_for
from outrider.engine.models.packing import PACKINGS
from outrider.engine.models.registry import load_model
from outrider.engine.models.settings import ModelSettings
from outrider.engine.sampling import greedy_tokens

from .rounds import Spread, Variant, interleaved, milliseconds, paired_ratio

READ_BYTES = 1_200_000_000
"""Read to measure the bandwidth, by all threads together: more than their caches hold."""

ROWS = (1, 2, 3, 5, 9, 13, 17)
CONTEXTS = (100, 400)


@dataclass(frozen=True, slots=True)
class StepCost:
    """One type, context and number of rows: milliseconds, and against 1 row in the same round.

    `bandwidth_share` is the rate at which weights are read over that of plain reading in the same
    round, when both had the machine as it was.
    """

    dtype: str
    context_tokens: int
    rows: int
    step_ms: Spread
    inflation: Spread
    read_gb_per_s: float
    bandwidth_share: Spread


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Bandwidth in GB/s, the bytes of weights that a step reads for each type, and the steps."""

    bandwidth_gb_per_s: Spread
    weight_bytes: dict[str, float]
    steps: tuple[StepCost, ...]

    def floor_ms(self, dtype: str) -> float:
        """The time that reading the weights takes at the best bandwidth seen."""
        return self.weight_bytes[dtype] / self.bandwidth_gb_per_s.greatest / 1e6


def measure_steps(path: Path, *, threads: int, rounds: int, budget_s: float) -> StepCosts:
    """Times steps and reads of memory side by side."""
    settings = ModelSettings(backend="fused", threads=threads).with_room(max(CONTEXTS) + max(ROWS))
    models = {dtype: load_model(path, replace(settings, dtype=dtype)) for dtype in PACKINGS}
    shapes = [(dtype, context, rows) for dtype in PACKINGS for context in CONTEXTS for rows in ROWS]
    reads = _readers(threads)
    variants: dict[object, Variant] = {name: Variant(read) for name, read in reads.items()}
    for model in models.values():
        _prefill(model, max(CONTEXTS))
    for dtype, context, rows in shapes:
        variants[dtype, context, rows] = Variant(_step(models[dtype], context, rows))
    seconds = interleaved(variants, rounds=rounds, budget_s=budget_s)
    shortest = tuple(map(min, zip(*(seconds[name] for name in reads), strict=True)))
    weights = {dtype: PACKINGS[dtype].step_bytes(models[dtype].config) for dtype in PACKINGS}
    steps = []
    for dtype, context, rows in shapes:
        taken = seconds[dtype, context, rows]
        step_ms = milliseconds(taken)
        steps.append(
            StepCost(
                dtype=dtype,
                context_tokens=context,
                rows=rows,
                step_ms=step_ms,
                inflation=paired_ratio(taken, seconds[dtype, context, 1]),
                read_gb_per_s=weights[dtype] / step_ms.median / 1e6,
                bandwidth_share=Spread.of(
                    [
                        weights[dtype] / step_s * read_s / READ_BYTES
                        for step_s, read_s in zip(taken, shortest, strict=True)
                    ]
                ),
            )
        )
    bandwidth = Spread.of([READ_BYTES / each / 1e9 for each in shortest])
    return StepCosts(bandwidth, weights, tuple(steps))


def _readers(threads: int) -> Mapping[str, Callable[[], object]]:
    """Ways to read `READ_BYTES`, of which the fastest tells the bandwidth.

    One way sums arrays, the other multiplies the halves of each, which are two streams.
    """
    arrays = [_ones(READ_BYTES // 8 // threads * 2) for _ in range(threads)]
    halves = [tuple(array.chunk(2)) for array in arrays]
    team = ThreadPoolExecutor(threads)

    def sums() -> object:
        return list(team.map(torch.sum, arrays))

    def products() -> object:
        return list(team.map(lambda pair: torch.dot(*pair), halves))

    return {"sum": sums, "dot product": products}


def _ones(count: int) -> torch.Tensor:
    """Numbers in the same kind of memory as the weights have."""
    return torch.from_numpy(aligned_zeros((count,), np.float32)).fill_(1)


def _prefill(model: TargetModel, count: int) -> None:
    tokens = [1 + i % (model.config.vocab_size - 1) for i in range(count)]
    model.forward(_rows(tokens, 0, [count - 1]))


def _step(model: TargetModel, context: int, rows: int) -> Callable[[], object]:
    """A forward pass of `rows` tokens after `context` others, and the greedy choice in each row."""
    batch = _rows(range(1, rows + 1), context, range(rows))
    return lambda: greedy_tokens(model.forward(batch))


def _rows(tokens: Sequence[int], first: int, wanted: Sequence[int]) -> Rows:
    """Tokens of the only sequence, at the positions from `first` on."""
    end = first + len(tokens)
    blocks = range(blocks_for(end))
    return Rows(tokens, range(first, end), [0] * len(tokens), [blocks], wanted)
