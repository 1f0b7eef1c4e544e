import pytest

from outrider.engine.drafting.batch_size_ranges import BatchSizeRanges
from outrider.errors import InvalidSetting


def ks(ranges: list[list[int]], *batch_sizes: int, most: int = 8) -> list[int]:
    table = BatchSizeRanges(ranges, most)
    return [table.k_for(size) for size in batch_sizes]


def test_a_batch_size_has_the_k_of_its_range_both_ends_included() -> None:
    assert ks([[1, 4, 5], [5, 16, 2], [17, 64, 0]], 1, 4, 5, 16, 17, 64) == [5, 5, 2, 2, 0, 0]


def test_the_order_of_the_ranges_does_not_matter() -> None:
    assert ks([[5, 16, 2], [1, 4, 5]], 4, 5) == [5, 2]


def test_gaps_and_the_tail_go_on_with_the_k_before_them() -> None:
    assert ks([[1, 2, 5], [10, 12, 1]], 3, 9, 10, 13, 10_000) == [5, 5, 1, 1, 1]


def test_no_k_counts_for_more_than_the_configured_one_and_who_asks_for_it_is_known() -> None:
    table = BatchSizeRanges([[1, 4, 9], [5, 8, 3]], 4)
    assert (table.k_for(1), table.k_for(5)) == (4, 3)
    assert table.clamped == [[1, 4, 9]]
    assert table.ranges == [[1, 4, 9], [5, 8, 3]]


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ([], "an empty num_speculative_tokens_per_batch_size"),
        ([[1, 4]], r"\[1, 4\].*three whole numbers"),
        ([[1, 4, 2.5]], "three whole numbers"),
        ([[1, 4, True]], "three whole numbers"),
        ([1, 4, 2], "1 in num_spec.*three whole numbers"),
        ([[0, 4, 2]], "1 <= start <= end"),
        ([[3, 2, 1]], "1 <= start <= end"),
        ([[1, 2, -1]], "K of 0 or more"),
        ([[2, 4, 3], [5, 8, 1]], "starts at batch size 2"),
        ([[4, 8, 1], [1, 4, 3]], r"\[1, 4, 3\] and \[4, 8, 1\].*start at 5 or later"),
        ([[1, 8, 1], [1, 4, 3]], "do not overlap"),
    ],
)
def test_ranges_that_break_a_rule_are_refused(ranges: list[list[int]], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        BatchSizeRanges(ranges, 8)
