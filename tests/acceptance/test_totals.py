"""Sums that can be merged and bounded without changing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.acceptance.columns import columns_of
from outrider.acceptance.totals import MOST_CLUSTERS, Totals, bounded
from outrider.records.reading import AcceptanceRecord
from outrider.records.tabulate import tabulate
from outrider.records.validation import validated


def a_record(histogram: list[int], k: int | None = None) -> AcceptanceRecord:
    return validated(AcceptanceRecord(engine="any", k=k, histogram=histogram))


@given(st.lists(st.integers(1, 50), max_size=600), st.integers(1, 300))
def test_bounded_rows_keep_their_sums_and_no_row_is_much_larger(
    sizes: list[int], most: int
) -> None:
    columns = columns_of(1)
    rows = np.zeros((len(sizes), columns.width))
    rows[:, columns["records"]] = sizes
    rows[:, columns["steps"]] = np.arange(len(sizes))
    fewer = bounded(rows, columns, most)
    assert len(fewer) <= most
    assert fewer.sum(axis=0).tolist() == rows.sum(axis=0).tolist()
    if len(sizes) > most:
        assert fewer[:, columns["records"]].max() <= 2 * sum(sizes) / most + 50


def test_totals_that_are_merged_in_parts_have_the_sums_of_all() -> None:
    records = [a_record([n % 7, n % 3, n % 2], k=2) for n in range(1000)]
    whole = Totals.empty(2).with_rows(tabulate(records, 2))
    parts = Totals.empty(2)
    for start in range(0, 1000, 137):
        part = Totals.empty(2).with_rows(tabulate(records[start : start + 137], 2))
        parts = parts.merged(part)
    # M by record is a fraction, all other sums are whole numbers.
    assert parts.sums == pytest.approx(whole.sums, rel=1e-12)
    assert len(whole.rows) <= MOST_CLUSTERS
    assert whole.count("records") == parts.count("records") == 1000
    expected = tuple(sum(n % size for n in range(1000)) for size in (7, 3, 2))
    assert whole.counts("histogram") == parts.counts("histogram") == expected


def test_rows_of_one_name_are_one_cluster_wherever_they_arrive() -> None:
    rows = tabulate([a_record([n, 1], k=1) for n in range(4)], 1)
    first = Totals.empty(1).with_rows(rows, ["a", None, "b", "a"])
    both = first.merged(Totals.empty(1).with_rows(rows, [None, "b", None, "c"]))
    assert len(first.rows) == 3
    assert both.names == ("a", "b", "c")
    steps = both.rows[:, both.columns["steps"]].tolist()
    assert steps == [2, 1, 3, 1 + 4, 3 + 2, 4]
    assert both.counts("histogram") == (12, 8)


def test_totals_of_different_k_are_never_merged() -> None:
    with pytest.raises(ValueError, match="K = 2 and 3"):
        Totals.empty(2).merged(Totals.empty(3))


@given(st.integers(0, 12))
def test_the_columns_of_a_k_do_not_overlap(k: int) -> None:
    columns = columns_of(k)
    places = [columns["records"], columns["cached_records"]]
    for name in ("histogram", "at_risk", "passed", "band_steps", "band_accepted"):
        places += range(columns.width)[columns.slice(name)]
    assert len(set(places)) == len(places)
    assert max(places) == columns.width - 1
