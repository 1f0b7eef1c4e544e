"""Batches filled up to a bucket have the logits that they have as they are."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.models.ragged import random_rows
from tests.engine.models.tiny import CASES
from torch.utils._python_dispatch import TorchDispatchMode

from outrider.engine.models.base import BLOCK_TOKENS, Rows, blocks_for
from outrider.engine.models.buckets import Bucket, PaddedRows
from outrider.engine.models.eager import EagerDecoder
from outrider.engine.models.graphs import (
    BucketRunner,
    Compute,
    CudaGraphs,
    OperatorByOperator,
)
from outrider.engine.models.safetensors_source import SafetensorsSource

CPU = torch.device("cpu")
LENGTH = 300
NUM_BLOCKS = 60
OWN_PLACES = NUM_BLOCKS * BLOCK_TOKENS


def load(
    folder: Path, runner: BucketRunner | None = None, device: torch.device = CPU
) -> EagerDecoder:
    return EagerDecoder(
        SafetensorsSource(folder),
        dtype=torch.float32,
        num_blocks=NUM_BLOCKS,
        max_length=LENGTH,
        device=device,
        runner=runner,
    )


class Counting(OperatorByOperator):
    """Remembers which buckets came."""

    def __init__(self, device: torch.device = CPU) -> None:
        super().__init__(device)
        self.seen: list[Bucket] = []

    def run(self, batch: PaddedRows, compute: Compute) -> torch.Tensor:
        self.seen.append(batch.bucket)
        return super().run(batch, compute)


def batches(count: int, seed: int = 1) -> Iterator[Rows]:
    """Random ones, of up to 9 sequences with up to 10 rows."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield random_rows(
            rng, most_sequences=9, most_rows=10, longest=LENGTH, num_blocks=NUM_BLOCKS
        )


def same_history(*models: EagerDecoder) -> None:
    """Fills the blocks of all with the same random keys and values."""
    generator = torch.Generator().manual_seed(2)
    shape = models[0]._keys[:, :OWN_PLACES].shape
    keys, values = (torch.randn(shape, generator=generator) for _ in range(2))
    for model in models:
        model._keys[:, :OWN_PLACES], model._values[:, :OWN_PLACES] = keys, values


def assert_same_cache(one: EagerDecoder, other: EagerDecoder) -> None:
    for name in ("_keys", "_values"):
        torch.testing.assert_close(
            getattr(one, name)[:, :OWN_PLACES],
            getattr(other, name)[:, :OWN_PLACES],
            atol=1e-4,
            rtol=0,
        )


@pytest.mark.parametrize("case", CASES)
def test_every_family_has_the_same_logits_and_cache_in_a_bucket(
    case: str, checkpoint: Callable[..., Path]
) -> None:
    runner = Counting()
    folder = checkpoint(**CASES[case])
    ragged, bucketed = load(folder), load(folder, runner)
    same_history(ragged, bucketed)
    for rows in batches(8):
        expected, seen = ragged.forward(rows), bucketed.forward(rows)
        assert seen.shape == expected.shape
        torch.testing.assert_close(seen, expected, atol=1e-4, rtol=0)
    assert_same_cache(ragged, bucketed)
    assert len(runner.seen) == 8


def test_a_piece_of_a_prompt_is_computed_as_it_is(checkpoint: Callable[..., Path]) -> None:
    runner = Counting()
    ragged, bucketed = load(checkpoint()), load(checkpoint(), runner)
    rows = Rows([7] * 18, range(18), [0] * 18, [[3]], [17])
    assert torch.equal(ragged.forward(rows), bucketed.forward(rows))
    assert not runner.seen


def test_a_batch_of_which_nothing_is_wanted_only_extends_the_cache(
    checkpoint: Callable[..., Path],
) -> None:
    ragged, bucketed = load(checkpoint()), load(checkpoint(), OperatorByOperator(CPU))
    rows = Rows([7] * 3, range(3), [0] * 3, [[3]], [])
    assert bucketed.forward(rows).shape == ragged.forward(rows).shape == (0, 199)
    assert_same_cache(ragged, bucketed)


def test_what_is_not_a_number_elsewhere_in_the_cache_reaches_nobody(
    checkpoint: Callable[..., Path],
) -> None:
    ragged, bucketed = load(checkpoint()), load(checkpoint(), OperatorByOperator(CPU))
    for rows in batches(20):
        same_history(ragged, bucketed)
        # All but what the sequences have already: later places, other blocks, and the dump.
        places = [
            rows.block_tables[owner][at // BLOCK_TOKENS] * BLOCK_TOKENS + at % BLOCK_TOKENS
            for owner in set(rows.sequences)
            for at in range(rows.positions[rows.sequences.index(owner)])
        ]
        others = torch.ones(bucketed._keys.shape[1], dtype=torch.bool)
        others[places] = False
        bucketed._keys[:, others] = bucketed._values[:, others] = math.nan
        seen = bucketed.forward(rows)
        torch.testing.assert_close(seen, ragged.forward(rows), atol=1e-4, rtol=0)


class Shapes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Remembers every operator, with the shapes of what it was given."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[tuple[str, ...]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        shapes = (str(tuple(each.shape)) for each in args if isinstance(each, torch.Tensor))
        self.seen.append((str(func), *shapes))
        return func(*args, **(kwargs or {}))


class Watched(Counting):
    """Remembers the operators of each bucket."""

    def __init__(self, device: torch.device = CPU) -> None:
        super().__init__(device)
        self.operators: dict[Bucket, set[tuple[tuple[str, ...], ...]]] = {}

    def run(self, batch: PaddedRows, compute: Compute) -> torch.Tensor:
        with Shapes() as shapes:
            result = super().run(batch, compute)
        self.operators.setdefault(batch.bucket, set()).add(tuple(shapes.seen))
        return result


def test_a_bucket_is_always_computed_by_the_same_operators_on_the_same_shapes(
    checkpoint: Callable[..., Path],
) -> None:
    runner = Watched()
    model = load(checkpoint(), runner)
    for rows in batches(60):
        model.forward(rows)
    assert len(runner.seen) > 2 * len(runner.operators) > 10
    assert {len(ways) for ways in runner.operators.values()} == {1}


META = torch.device("meta")
"""Computes shapes and no values, so that whatever asks for a value fails there."""


@pytest.mark.parametrize(
    "read",
    [
        torch.Tensor.item,
        torch.Tensor.tolist,
        torch.Tensor.cpu,
        torch.Tensor.nonzero,
        bool,
        lambda number: torch.zeros(1, device=META)[number > 0],
    ],
)
def test_a_device_without_values_tells_when_one_is_asked_for(
    read: Callable[[torch.Tensor], object],
) -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        read(torch.ones(1, device=META))


@pytest.mark.parametrize("case", ["llama", "mistral, windows", "qwen 2", "qwen 3", "gemma 3"])
@pytest.mark.parametrize("runner", [None, OperatorByOperator(META)], ids=["ragged", "bucketed"])
def test_no_value_is_asked_of_the_device_before_the_logits_are_there(
    case: str, runner: BucketRunner | None, checkpoint: Callable[..., Path]
) -> None:
    model = load(checkpoint(**CASES[case]), runner, META)
    for rows in batches(5):
        assert model.forward(rows).shape == (len(rows.wanted), 199)


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@needs_cuda
@pytest.mark.parametrize("case", CASES)
def test_recorded_graphs_have_the_logits_of_the_ragged_way(
    case: str, checkpoint: Callable[..., Path]
) -> None:
    cuda = torch.device("cuda")
    folder = checkpoint(**CASES[case])
    ragged, graphs = load(folder, device=cuda), load(folder, CudaGraphs(cuda), cuda)
    same_history(ragged, graphs)
    for seed in (1, 1, 2):  # recorded, replayed, and replayed with other batches between
        for rows in batches(8, seed):
            torch.testing.assert_close(
                graphs.forward(rows), ragged.forward(rows), atol=1e-3, rtol=0
            )
    assert_same_cache(ragged, graphs)


@needs_cuda
def test_a_replay_waits_for_nothing(checkpoint: Callable[..., Path]) -> None:
    cuda = torch.device("cuda")
    model = load(checkpoint(), CudaGraphs(cuda), cuda)
    rows = Rows([5] * 3, range(3), [0] * 3, [range(blocks_for(3))], range(3))
    model.forward(rows)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            model.forward(rows)
    finally:
        torch.cuda.set_sync_debug_mode("default")
