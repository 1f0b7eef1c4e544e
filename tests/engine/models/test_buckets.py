import numpy as np
import pytest
from tests.engine.models.ragged import random_rows

from outrider.engine.models.base import BLOCK_TOKENS, Rows
from outrider.engine.models.buckets import (
    MOST_CACHED,
    MOST_ROWS,
    Bucket,
    Buckets,
    PaddedRows,
    padded_rows,
    paged_bucket,
)

DUMP = 90
BUCKETS = Buckets(max_length=1000, dump=DUMP)


def padded(rows: Rows) -> PaddedRows:
    batch = padded_rows(rows, BUCKETS)
    assert batch is not None
    return batch


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ((1, 1, 1), Bucket(1, 1, 256)),
        ((3, 4, 257), Bucket(4, 5, 512)),
        ((16, 9, 512), Bucket(16, 9, 512)),
        ((33, 2, 513), Bucket(64, 2, 1024)),
        ((1, 17, 1000), Bucket(1, 17, 1024)),
    ],
)
def test_a_batch_takes_the_smallest_shape_that_has_room(
    asked: tuple[int, int, int], expected: Bucket
) -> None:
    assert BUCKETS.fitting(*asked) == expected


@pytest.mark.parametrize(
    "asked", [(257, 1, 1), (1, 18, 18), (1, 1, 1025), (64, 9, 100), (256, 3, 100)]
)
def test_a_larger_batch_has_none(asked: tuple[int, int, int]) -> None:
    assert BUCKETS.fitting(*asked) is None


def test_no_shape_is_larger_than_rows_and_cache_allow() -> None:
    every = Buckets(max_length=100_000, dump=0).all
    assert max(bucket.rows for bucket in every) == MOST_ROWS
    assert max(bucket.sequences * bucket.tokens for bucket in every) <= MOST_CACHED
    assert all(bucket.tokens % BLOCK_TOKENS == 0 for bucket in every)


def test_a_short_model_has_no_longer_shapes_than_it_needs() -> None:
    assert {bucket.tokens for bucket in Buckets(max_length=65, dump=0).all} == {128}


def test_thousands_of_batches_have_no_more_shapes_than_there_are_buckets() -> None:
    rng, seen = np.random.default_rng(5), set()
    for _ in range(3_000):
        batch = padded_rows(random_rows(rng, most_sequences=70, most_rows=19), BUCKETS)
        if batch is not None:
            seen.add((batch.bucket, batch.numbers.shape))
    assert len({shape for _, shape in seen}) > 10
    assert len(seen) == len({bucket for bucket, _ in seen})
    assert {bucket for bucket, _ in seen} <= BUCKETS.all


def test_rows_keep_their_tokens_and_places_and_the_others_write_to_the_dump() -> None:
    rows = Rows([5, 6, 7], [63, 64, 2], [1, 1, 0], [[4], [2, 9]], [0, 2])
    batch = padded(rows)
    assert batch.bucket == Bucket(2, 2, 256)
    paged = paged_bucket(batch.numbers, batch.bucket, {0})
    assert paged.token_ids.tolist() == [5, 6, 7, 7]
    assert paged.positions.tolist() == [63, 64, 2, 2]
    assert paged.places.tolist() == [2 * 64 + 63, 9 * 64, 4 * 64 + 2, DUMP * 64]
    assert paged.wanted.tolist()[:2] == [0, 2]
    assert len(paged.wanted) == 4


def test_a_missing_sequence_reads_and_writes_the_dump_alone() -> None:
    batch = padded(Rows([5] * 3, [9] * 3, [0, 1, 2], [[1], [2], [3]], [0]))
    (group,) = (paged := paged_bucket(batch.numbers, batch.bucket, {0})).groups
    assert paged.places.tolist()[3:] == [DUMP * 64]
    assert set(group.places[3].tolist()) == {DUMP * 64}


def test_no_sequence_reads_what_is_not_its_own() -> None:
    rng = np.random.default_rng(6)
    for _ in range(50):
        rows = random_rows(rng, most_sequences=9, most_rows=9)
        batch = padded(rows)
        (group,) = paged_bucket(batch.numbers, batch.bucket, {0}).groups
        order = list(dict.fromkeys(rows.sequences))
        for sequence, places in zip(order, group.places.tolist(), strict=False):
            last = max(
                at
                for at, owner in zip(rows.positions, rows.sequences, strict=True)
                if owner == sequence
            )
            table = rows.block_tables[sequence]
            assert set(places) == {table[at // 64] * 64 + at % 64 for at in range(last + 1)}
