"""What a step of greedy requests does not allocate: anything as long as the vocabulary."""

import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from tests.engine.loops import ScriptedDrafter, engine_of, request
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from outrider.engine.models.fused import FusedDecoder
from outrider.engine.models.packing import PACKINGS
from outrider.engine.models.safetensors_source import SafetensorsSource
from outrider.engine.sampling import SamplingParameters

VOCABULARY = 50_000


class NewTensors(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the size of every tensor that an operator makes, views of its arguments left out."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.sizes: list[int] = []

    def __torch_dispatch__(
        self, func: Any, types: Sequence[Any], args: Any = (), kwargs: Any = None
    ) -> Any:
        given = {_memory(each) for each in tree_leaves((args, kwargs)) if torch.is_tensor(each)}
        result = func(*args, **(kwargs or {}))
        made = [each for each in tree_leaves(result) if torch.is_tensor(each)]
        self.sizes += [each.numel() for each in made if _memory(each) not in given]
        return result


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def largest_of_a_step(checkpoint: Path, parameters: SamplingParameters) -> tuple[int, int]:
    """Elements of the largest new tensor, and bytes that Python and NumPy held at most, in a step.

    It is a step of three requests with drafts, the fifth or later.
    """
    model = FusedDecoder(
        SafetensorsSource(checkpoint),
        packing=PACKINGS["float32"],
        num_blocks=9,
        max_length=100,
        threads=2,
    )
    engine, recorder = engine_of(model, ScriptedDrafter(lambda _: [1, 2, 3, 4]), 4)
    sequences = [
        request([3, place] * 10, 60, f"r{place}", parameters=parameters) for place in range(3)
    ]
    for sequence in sequences:
        engine.add(sequence)
    for _ in range(4):
        engine.step()
    most_elements, most_bytes = 0, 0
    for _ in range(5):
        with NewTensors() as made:
            tracemalloc.start()
            engine.step()
            most_bytes = max(most_bytes, tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        most_elements = max([most_elements, *made.sizes])
    drafted = [recorder.take(each).steps[4:] for each in sequences]
    assert sum(step.drafted for steps in drafted for step in steps) > 0
    return most_elements, most_bytes


def test_a_greedy_step_makes_nothing_as_long_as_the_vocabulary(
    checkpoint: Callable[..., Path],
) -> None:
    folder = checkpoint(vocab_size=VOCABULARY, num_hidden_layers=1)
    elements, held_bytes = largest_of_a_step(folder, SamplingParameters())
    assert elements < VOCABULARY / 10
    assert held_bytes < VOCABULARY * 4
    elements, _ = largest_of_a_step(folder, SamplingParameters(1.0, 5))
    assert elements >= VOCABULARY  # it would be seen
