"""How fast this machine reads memory, with as many threads as the engine has."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import torch

READ_BYTES = 600_000_000
"""Read by each thread in one measurement: more than any cache holds."""


def readers(threads: int) -> tuple[int, Mapping[str, Callable[[], object]]]:
    """The bytes that one call reads, and ways to read them; the fastest tells the bandwidth.

    One way sums an array, the other multiplies its halves, which are two streams.
    """
    arrays = [torch.ones(READ_BYTES // 4) for _ in range(threads)]
    halves = [tuple(array.chunk(2)) for array in arrays]
    team = ThreadPoolExecutor(threads)

    def sums() -> object:
        return list(team.map(torch.sum, arrays))

    def products() -> object:
        return list(team.map(lambda pair: torch.dot(*pair), halves))

    return threads * READ_BYTES, {"sum": sums, "dot product": products}
