"""Random batches of a few rows for each sequence, over a cache whose blocks lie anywhere."""

import numpy as np

from outrider.engine.models.base import Rows, blocks_for


def random_rows(
    rng: np.random.Generator,
    *,
    most_sequences: int,
    most_rows: int,
    longest: int = 1000,
    num_blocks: int = 2_000,
) -> Rows:
    """Sequences in any order, each with 1 to `most_rows` rows; some rows are wanted, some not."""
    count, most = int(rng.integers(1, most_sequences + 1)), int(rng.integers(1, most_rows + 1))
    reach = int(rng.integers(most_rows, longest + 1))
    free = rng.permutation(num_blocks).tolist()
    positions: list[int] = []
    sequences: list[int] = []
    tables: list[list[int]] = [[] for _ in range(count)]
    for sequence in rng.permutation(count).tolist():
        rows = int(rng.integers(1, most + 1))
        first = int(rng.integers(0, reach - rows + 1))
        # A table may have room for what comes next.
        tables[sequence] = [free.pop() for _ in range(blocks_for(first + rows) + 1)]
        positions += range(first, first + rows)
        sequences += [sequence] * rows
    token_ids = rng.integers(0, 199, len(positions)).tolist()
    wanted = np.flatnonzero(rng.random(len(positions)) < 0.8).tolist()
    return Rows(token_ids, positions, sequences, tables, wanted)
