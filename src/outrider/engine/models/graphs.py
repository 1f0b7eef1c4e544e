"""How the computation of a bucket is run: operator by operator, or as one recorded CUDA graph."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from outrider.engine.models.buckets import Bucket, PaddedRows
from outrider.engine.models.paged_rows import sent

Compute = Callable[[Bucket, Tensor], Tensor]
"""From a bucket and the numbers of a batch on a device, to what the model makes of it there.

It may extend the cache, but what it leaves there is the same when it is run again.
"""

WARM_UPS = 2
"""Runs before one is recorded: the first load kernels and choose among them."""


class BucketRunner(Protocol):
    """Runs the computation of one model, always the same one."""

    def run(self, batch: PaddedRows, compute: Compute) -> Tensor:
        """Return what `compute` makes of `batch`; it holds until the next call."""
        ...


class OperatorByOperator:
    """Runs on any device, without a graph; what tests of the shapes run on."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def run(self, batch: PaddedRows, compute: Compute) -> Tensor:
        """See `BucketRunner.run`."""
        return compute(batch.bucket, sent(batch.numbers, self._device))


class CudaGraphs:
    """Records a graph when a bucket comes first, and from then on only replays it.

    One launch then starts all kernels of a step. All graphs share one pool of memory, since no
    two run at once.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._recorded: dict[Bucket, _Recorded] = {}
        self._pool = torch.cuda.graph_pool_handle()
        self._aside = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def run(self, batch: PaddedRows, compute: Compute) -> Tensor:
        """See `BucketRunner.run`."""
        recorded = self._recorded.get(batch.bucket)
        if recorded is None:
            recorded = self._recorded[batch.bucket] = self._record(batch, compute)
        # Pinned memory stays unused by others until the copy is done, so nobody waits for it.
        recorded.numbers.copy_(batch.numbers.pin_memory(), non_blocking=True)
        recorded.graph.replay()
        return recorded.result

    def _record(self, batch: PaddedRows, compute: Compute) -> "_Recorded":
        numbers = batch.numbers.to(self._device)
        current = torch.cuda.current_stream(self._device)
        self._aside.wait_stream(current)
        with torch.cuda.stream(self._aside):
            for _ in range(WARM_UPS):
                compute(batch.bucket, numbers)
        current.wait_stream(self._aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            result = compute(batch.bucket, numbers)
        return _Recorded(graph, numbers, result)


class _Recorded(NamedTuple):
    graph: torch.cuda.CUDAGraph
    numbers: Tensor
    result: Tensor
