import torch

from outrider.engine.models.base import Rows
from outrider.engine.models.paged_rows import PagedRows, paged_rows

CPU = torch.device("cpu")


def laid_out(rows: Rows, *windows: int) -> PagedRows:
    return paged_rows(rows, windows or (0,), CPU)


def test_a_row_is_cached_in_the_block_of_its_table() -> None:
    rows = Rows([5, 6, 7, 8], [63, 64, 0, 1], [0, 0, 1, 1], [[2, 9], [4]], [1, 3])
    batch = laid_out(rows)
    assert batch.places.tolist() == [2 * 64 + 63, 9 * 64, 4 * 64, 4 * 64 + 1]
    assert batch.wanted.tolist() == [1, 3]


def test_sequences_with_equally_many_rows_are_read_together() -> None:
    rows = Rows([0] * 5, [3, 7, 0, 1, 9], [0, 2, 1, 1, 3], [[1], [2], [3], [4]], [])
    assert [group.rows.tolist() for group in laid_out(rows).groups] == [[[0], [1], [4]], [[2, 3]]]


def test_a_row_sees_its_sequence_up_to_itself() -> None:
    (group,) = laid_out(Rows([0] * 3, [1, 2, 3], [0] * 3, [[5]], [])).groups
    assert group.places.tolist() == [[320, 321, 322, 323]]
    assert group.visible[0][0, 0].int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]


def test_a_window_counts_the_token_itself() -> None:
    (group,) = laid_out(Rows([0] * 2, [2, 3], [0] * 2, [[0]], []), 0, 2).groups
    assert group.visible.keys() == {0, 2}
    assert group.visible[2][0, 0].int().tolist() == [[0, 1, 1, 0], [0, 0, 1, 1]]


def test_a_shorter_sequence_reads_nothing_that_it_has_not_written() -> None:
    (group,) = laid_out(Rows([0, 0], [1, 3], [0, 1], [[6], [2]], [])).groups
    assert group.places.tolist() == [[384, 385, 385, 385], [128, 129, 130, 131]]
    assert group.visible[0][:, 0, 0].int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
