"""In which order the requests of a comparison run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from outrider.records.arm import Arm
from outrider.records.prompt import PromptRecord


@dataclass(frozen=True, slots=True)
class Block:
    """One prompt in one repeat, answered by every arm, in this order, before the next prompt."""

    repeat: int
    prompt: PromptRecord
    arms: tuple[Arm, ...]


def measured_blocks(
    arms: Sequence[Arm], prompts: Sequence[PromptRecord], *, repeats: int, seed: int
) -> Iterator[Block]:
    """Each repeat shuffles the prompts, and each prompt its arms, so that drift hits all alike.

    The same arguments give the same order, which is how an interrupted run finds its place.
    """
    rng = np.random.default_rng(seed)
    for repeat in range(repeats):
        for p in rng.permutation(len(prompts)):
            order = rng.permutation(len(arms))
            yield Block(repeat, prompts[p], tuple(arms[a] for a in order))
