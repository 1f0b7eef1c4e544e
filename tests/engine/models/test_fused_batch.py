from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.engine.models.base import Rows
from outrider.engine.models.fused_batch import PASS_ROWS, PassLimits, batches

LIMITS = PassLimits(vocab_size=100, max_length=130, num_blocks=6, kv_heads=3, group=3, threads=2)


def rows(*runs: tuple[int, int], wanted: Any = ()) -> Rows:
    """One sequence for each (first position, number of rows), with tables of the length needed."""
    return Rows(
        token_ids=[1] * sum(count for _, count in runs),
        positions=[at for first, count in runs for at in range(first, first + count)],
        sequences=[i for i, (_, count) in enumerate(runs) for _ in range(count)],
        block_tables=[list(range((first + count - 1) // 64 + 1)) for first, count in runs],
        wanted=wanted,
    )


def test_block_tables_of_different_lengths_stand_side_by_side() -> None:
    ((batch, _),) = batches(rows((0, 2), (127, 2), (64, 1)), LIMITS)
    assert batch.tables.tolist() == [[0, 0, 0], [0, 1, 2], [0, 1, 0]]
    assert batch.sequences.tolist() == [0, 0, 1, 1, 2]
    assert batch.positions.tolist() == [0, 1, 127, 128, 64]


def test_many_rows_make_several_passes_each_with_its_own_wanted_rows() -> None:
    last, half = PASS_ROWS - 1, (0, PASS_ROWS // 2)
    wanted = [0, last, last + 1, 2 * PASS_ROWS + 7]
    seen = list(batches(rows(half, half, half, half, (0, 8), wanted=wanted), LIMITS))
    assert [len(batch.positions) for batch, _ in seen] == [PASS_ROWS, PASS_ROWS, 8]
    assert [batch.wanted.tolist() for batch, _ in seen] == [[0, last], [0], [7]]
    assert [(place.start, place.stop) for _, place in seen] == [(0, 2), (2, 3), (3, 4)]


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(1, 30)), min_size=1, max_size=3),
    st.integers(1, 16),
    st.sampled_from([1, 3, 8]),
)
def test_chunks_cover_all_rows_and_hold_one_sequence_each(
    runs: list[tuple[int, int]], threads: int, kv_heads: int
) -> None:
    limits = replace(LIMITS, threads=threads, kv_heads=kv_heads)
    for batch, _ in batches(rows(*runs), limits):
        chunks = batch.chunks.tolist()
        assert chunks[0] == 0
        assert chunks[-1] == len(batch.positions)
        for start, end in pairwise(chunks):
            assert 1 <= end - start <= 16
            assert len(set(batch.sequences[start:end].tolist())) == 1


@pytest.mark.parametrize(
    ("threads", "kv_heads", "chunks"),
    [(1, 3, [0, 9]), (2, 3, [0, 4, 9]), (2, 1, [0, 1, 3, 5, 7, 9]), (2, 8, [0, 9])],
)
def test_a_draft_is_divided_so_that_every_thread_has_work(
    threads: int, kv_heads: int, chunks: list[int]
) -> None:
    limits = replace(LIMITS, threads=threads, kv_heads=kv_heads)
    ((batch, _),) = batches(rows((100, 9)), limits)
    assert batch.chunks.tolist() == chunks


def test_rows_of_a_very_long_context_attend_few_at_a_time() -> None:
    limits = replace(LIMITS, max_length=200_000, num_blocks=4_000, threads=1)
    for first, most in ((8_000, 5), (190_000, 1)):
        ((batch, _),) = batches(rows((first, 20)), limits)
        assert np.diff(batch.chunks).max() == most


@pytest.mark.parametrize(
    "outside",
    [
        Rows([100], [0], [0], [[0]], [0]),
        Rows([-1], [0], [0], [[0]], [0]),
        Rows([0], [130], [0], [[0, 1, 2]], [0]),
        Rows([0], [64], [0], [[0]], [0]),
        Rows([0], [0], [1], [[0]], [0]),
        Rows([0], [0], [0], [[6]], [0]),
        Rows([0], [0], [0], [[]], [0]),
        Rows([0, 0], [0, 64], [0, 1], [[0, 1], [2]], [0]),
    ],
)
def test_no_row_reaches_outside_the_model_or_its_cache(outside: Rows) -> None:
    with pytest.raises(AssertionError, match="outside"):
        list(batches(outside, LIMITS))


def test_rows_of_a_sequence_have_to_ascend() -> None:
    with pytest.raises(AssertionError, match="ascend"):
        list(batches(Rows([0, 0], [1, 1], [0, 0], [[0]], [0]), LIMITS))
    list(batches(Rows([0, 0], [1, 0], [0, 1], [[0], [1]], [0]), LIMITS))
