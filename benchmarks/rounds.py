"""Timing variants side by side, all of them in each round, so that drift hits all alike."""

import statistics
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
import torch
from scipy import stats

SETTLING_S = 0.05
"""For the threads of OpenMP to stop spinning, which they do for a while after their last work."""

FEWEST_ROUNDS = 3

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Spread:
    """The median, least and greatest of `count` repeated measurements."""

    count: int
    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Summarises at least one value."""
        return cls(len(values), statistics.median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Variant:
    """One thing to time, and the threads that torch has while it runs.

    The engine's kernels have a team of threads of their own, beside which torch has to rest: 1.
    """

    run: Callable[[], object]
    torch_threads: int = 1


def use_torch_threads(threads: int) -> bool:
    """Gives torch that many threads; True where that was a change."""
    if torch.get_num_threads() == threads:
        return False
    torch.set_num_threads(threads)
    time.sleep(SETTLING_S)
    return True


def interleaved(
    variants: Mapping[Name, Variant], *, rounds: int, budget_s: float, seed: int = 0
) -> dict[Name, list[float]]:
    """Seconds of every variant, one for each round, after a round that does not count.

    The order is drawn anew each round, variants of one number of torch's threads together. No
    round begins once `budget_s` is spent and `FEWEST_ROUNDS` are done.
    """
    rng = np.random.default_rng(seed)
    names = list(variants)
    seconds: dict[Name, list[float]] = {name: [] for name in names}
    start = time.perf_counter()
    for round_ in range(-1, rounds):
        if round_ >= FEWEST_ROUNDS and time.perf_counter() - start > budget_s:
            break
        order = [names[i] for i in rng.permutation(len(names))]
        for name in sorted(order, key=lambda name: variants[name].torch_threads):
            variant = variants[name]
            if use_torch_threads(variant.torch_threads):
                variant.run()
            began = time.perf_counter()
            variant.run()
            if round_ >= 0:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def milliseconds(seconds: Sequence[float]) -> Spread:
    """The spread of one variant's times."""
    return Spread.of([1e3 * each for each in seconds])


def paired(seconds: Sequence[float], reference: Sequence[float]) -> list[float]:
    """The ratio of two variants in each round."""
    return [a / b for a, b in zip(seconds, reference, strict=True)]


def paired_ratio(seconds: Sequence[float], reference: Sequence[float]) -> Spread:
    """The spread of the ratio of two variants, round by round."""
    return Spread.of(paired(seconds, reference))


def median_interval(values: Sequence[float], *, level: float = 0.95) -> Spread:
    """The median with its bootstrap interval in place of the range, from two values on."""
    found = stats.bootstrap(
        (values,),
        np.median,
        confidence_level=level,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Spread(len(values), statistics.median(values), float(found.low), float(found.high))
