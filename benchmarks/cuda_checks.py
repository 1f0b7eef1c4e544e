"""What to run where there is a GPU: `python -m benchmarks.cuda_checks MODEL`, from the root.

First the tests that need one, then the time of steps with and without CUDA graphs, in turn.
MODEL is named as in `outrider tune`.
"""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import torch

from outrider.engine.models.base import Rows, TargetModel, blocks_for
from outrider.engine.models.registry import load_model
from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.store import cache_directory, locate_model
from outrider.engine.sampling import greedy_tokens

from .rounds import Variant, interleaved, milliseconds, paired_ratio

SEQUENCES = (1, 4, 16)
ROWS_EACH = (1, 2, 3, 5, 9)
CONTEXT = 400
TESTS = ("tests/engine/models/test_graphs.py", "tests/engine/models/test_eager.py")


def main() -> None:
    """Runs the tests and prints the table."""
    if not torch.cuda.is_available():
        sys.exit("no CUDA device; expected one that torch finds; run this on a machine with a GPU")
    tested = subprocess.run([sys.executable, "-m", "pytest", "-q", *TESTS], check=False)  # noqa: S603
    name = sys.argv[1] if len(sys.argv) > 1 else "smollm2-135m"
    path = locate_model(name, cache_dir=cache_directory(), report=print).path
    room = CONTEXT + max(ROWS_EACH)
    settings = ModelSettings(backend="torch").with_room(room, max(SEQUENCES))
    print(f"{name} on {torch.cuda.get_device_name()}, torch {torch.__version__}")
    table(
        graphs=load_model(path, settings),
        eager=load_model(path, replace(settings, enforce_eager=True)),
    )
    sys.exit(tested.returncode)


def table(*, graphs: TargetModel, eager: TargetModel) -> None:
    """Prints one line for each shape of a batch."""
    shapes = [(sequences, rows) for sequences in SEQUENCES for rows in ROWS_EACH]
    models = {"graphs": graphs, "eager": eager}
    seconds = interleaved(
        {
            (way, shape): Variant(step(model, *shape))
            for way, model in models.items()
            for shape in shapes
        },
        rounds=50,
        budget_s=120,
    )
    print("| sequences | rows each | graphs, ms | eager, ms | eager / graphs | over 1 row |")
    print("| --- | --- | --- | --- | --- | --- |")
    for sequences, rows in shapes:
        shape = (sequences, rows)
        spreads = (
            milliseconds(seconds["graphs", shape]),
            milliseconds(seconds["eager", shape]),
            paired_ratio(seconds["eager", shape], seconds["graphs", shape]),
            paired_ratio(seconds["graphs", shape], seconds["graphs", (sequences, 1)]),
        )
        told = (f"{each.median:.2f} ({each.least:.2f}–{each.greatest:.2f})" for each in spreads)
        print(f"| {sequences} | {rows} | {' | '.join(told)} |")


def step(model: TargetModel, sequences: int, rows_each: int) -> Callable[[], object]:
    """A forward pass after `CONTEXT` tokens of each sequence, and the greedy choices read."""
    blocks = blocks_for(CONTEXT + rows_each)
    count = sequences * rows_each
    rows = Rows(
        [1] * count,
        [*range(CONTEXT, CONTEXT + rows_each)] * sequences,
        [sequence for sequence in range(sequences) for _ in range(rows_each)],
        [range(first * blocks, (first + 1) * blocks) for first in range(sequences)],
        range(count),
    )
    return lambda: greedy_tokens(model.forward(rows)).cpu()


if __name__ == "__main__":
    main()
