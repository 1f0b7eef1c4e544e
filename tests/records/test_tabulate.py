"""The sums of many records against counting every single step by hand."""

from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.acceptance.columns import OUTPUT_BANDS, WIDTH_OF_UNKNOWN_K
from outrider.acceptance.survival import product_limit_survival
from outrider.acceptance.totals import MOST_CLUSTERS, Totals
from outrider.records.reading import AcceptanceRecord
from outrider.records.tabulate import tabulate
from outrider.records.validation import validated

Steps = list[tuple[int, int]]
"""Accepted and drafted length of each verification step."""


@st.composite
def requests(draw: st.DrawFn) -> tuple[int, list[Steps]]:
    k = draw(st.integers(1, 6))
    step = st.integers(1, k).flatmap(lambda d: st.tuples(st.integers(0, d), st.just(d)))
    return k, draw(st.lists(st.lists(step, max_size=60), max_size=6))


def of_steps(steps: Steps, k: int) -> AcceptanceRecord:
    accepted = [a for a, _ in steps]
    return AcceptanceRecord(
        engine="x",
        k=k,
        histogram=[accepted.count(j) for j in range(k + 1)],
        drafted=sum(d for _, d in steps),
        per_step_accepted=accepted,
        per_step_drafted=[d for _, d in steps],
    )


def of_table(steps: Steps, k: int) -> AcceptanceRecord:
    table = [[steps.count((a, d)) for a in range(k + 1)] for d in range(k + 1)]
    accepted = sum(a for a, _ in steps)
    return AcceptanceRecord(engine="x", k=k, steps=len(steps), accepted=accepted, draft_table=table)


def totals(records: list[AcceptanceRecord], k: int) -> Totals:
    return Totals.empty(k).with_rows(tabulate([validated(r) for r in records], k))


def band_sums(steps: Steps) -> tuple[list[int], list[int]]:
    counts, accepted = [0] * len(OUTPUT_BANDS), [0] * len(OUTPUT_BANDS)
    position = 1  # the prefill gave the token at 0
    for a, _ in steps:
        band = bisect_right(OUTPUT_BANDS, position) - 1
        counts[band] += 1
        accepted[band] += a
        position += a + 1
    return counts, accepted


@given(requests())
def test_sums_over_requests_are_those_of_their_steps_one_by_one(
    drawn: tuple[int, list[Steps]],
) -> None:
    k, answers = drawn
    sums = totals([of_steps(steps, k) for steps in answers], k)
    every = [step for steps in answers for step in steps]
    assert sums.count("records") == sums.count("requests") == len(answers)
    assert sums.count("steps") == len(every) == sums.count("length_known_steps")
    assert sums.count("accepted") == sum(a for a, _ in every)
    assert sums.count("drafted") == sum(d for _, d in every)
    assert sums.counts("histogram") == tuple(sum(a == j for a, _ in every) for j in range(k + 1))
    with_steps = [steps for steps in answers if steps]
    assert sums.count("stepping_records") == len(with_steps)
    means = [1 + sum(a for a, _ in steps) / len(steps) for steps in with_steps]
    assert sums.sums[sums.columns["mean_sum"]] == pytest.approx(sum(means))
    pairs = [(sum(a for a, _ in steps), len(steps)) for steps in answers]
    assert sums.count("accepted_accepted") == sum(a * a for a, _ in pairs)
    assert sums.count("accepted_steps") == sum(a * s for a, s in pairs)
    assert sums.count("steps_steps") == sum(s * s for _, s in pairs)


@given(requests())
def test_at_risk_and_passed_are_those_of_the_product_limit(drawn: tuple[int, list[Steps]]) -> None:
    k, answers = drawn
    every = [step for steps in answers for step in steps]
    expected = product_limit_survival([a for a, _ in every], [d for _, d in every], k)
    for make in (of_steps, of_table):
        sums = totals([make(steps, k) for steps in answers], k)
        assert sums.counts("at_risk") == tuple(position.at_risk for position in expected)
        assert sums.counts("passed") == tuple(position.accepted for position in expected)
        assert sums.count("length_known_steps") == len(every)


@given(requests())
def test_a_histogram_whose_drafts_were_all_full_says_as_much_as_its_steps(
    drawn: tuple[int, list[Steps]],
) -> None:
    k, answers = drawn
    full = [[(a, k) for a, _ in steps] for steps in answers]
    listed = totals([of_steps(steps, k) for steps in full], k)
    summed = totals(
        [
            AcceptanceRecord(
                engine="x",
                k=k,
                histogram=[sum(a == j for a, _ in steps) for j in range(k + 1)],
                drafted=k * len(steps),
            )
            for steps in full
        ],
        k,
    )
    for name in ("histogram", "at_risk", "passed"):
        assert listed.counts(name) == summed.counts(name)
    assert listed.count("length_known_steps") == summed.count("length_known_steps")


@pytest.mark.parametrize("basis", ["nominal", "counted"])
def test_a_histogram_of_unknown_draft_lengths_puts_no_step_at_risk(basis: str) -> None:
    nominal = basis == "nominal"
    record = AcceptanceRecord(
        engine="x",
        k=2,
        histogram=(3, 1, 1),
        drafted=10 if nominal else 9,
        drafted_basis="nominal" if nominal else "counted",
    )
    sums = totals([record], 2)
    assert sums.count("length_known_steps") == 0
    assert sums.counts("at_risk") == (0, 0)


@given(requests())
def test_each_step_falls_into_the_band_of_the_output_where_it_began(
    drawn: tuple[int, list[Steps]],
) -> None:
    k, answers = drawn
    sums = totals([of_steps(steps, k) for steps in answers], k)
    bands = [band_sums(steps) for steps in answers]
    columns = len(OUTPUT_BANDS)
    assert sums.counts("band_steps") == tuple(sum(b[0][i] for b in bands) for i in range(columns))
    assert sums.counts("band_accepted") == tuple(
        sum(b[1][i] for b in bands) for i in range(columns)
    )


def test_a_step_at_the_very_start_of_a_band_belongs_to_it() -> None:
    # 1 from the prefill and 31 steps of one token: step 32 begins at output position 32.
    sums = totals([of_steps([(0, 1)] * 32, 1)], 1)
    assert sums.counts("band_steps")[:2] == (31, 1)


def test_unknown_counts_are_told_from_zero() -> None:
    unknown = AcceptanceRecord(engine="x", steps=4, accepted=2, requests=None)
    zero = AcceptanceRecord(engine="x", steps=0, accepted=0, drafted=0, histogram=(0,), requests=0)
    sums = totals([unknown, zero], 0)
    for name in ("requests_unknown", "drafted_unknown", "histogram_unknown"):
        assert sums.rows[:, sums.columns[name]].tolist() == [1, 0]
    assert sums.count("stepping_records") == 1
    assert len(sums.counts("histogram")) == WIDTH_OF_UNKNOWN_K


def test_tokens_are_explained_only_where_a_record_tells_and_counts_both() -> None:
    records = [
        AcceptanceRecord(engine="x", steps=4, accepted=2, completion_tokens=9),
        AcceptanceRecord(engine="x", steps=4, accepted=2, completion_tokens=5),
        AcceptanceRecord(engine="x", steps=4, accepted=2, completion_tokens=6),
        AcceptanceRecord(engine="x", steps=4, accepted=2),
        AcceptanceRecord(
            engine="x", steps=4, accepted=2, completion_tokens=6, steps_basis="estimated"
        ),
        AcceptanceRecord(
            engine="x", steps=4, accepted=2, completion_tokens=7, accepted_basis="estimated"
        ),
    ]
    sums = totals(records, 0)
    assert sums.count("completion_records") == 3
    assert (sums.count("completion_tokens"), sums.count("explained_tokens")) == (20, 18)
    assert (sums.count("more_tokens"), sums.count("fewer_tokens")) == (3, 1)
    assert (sums.count("more_tokens_records"), sums.count("fewer_tokens_records")) == (1, 1)


def test_coverage_counts_only_records_that_tell_their_decode_steps() -> None:
    records = [
        AcceptanceRecord(engine="x", steps=4, accepted=2, decode_steps=10),
        AcceptanceRecord(engine="x", steps=5, accepted=2),
    ]
    sums = totals(records, 0)
    assert (sums.count("covered_steps"), sums.count("decode_steps")) == (4, 10)


def test_only_text_that_was_seen_can_repeat_itself() -> None:
    records = [
        AcceptanceRecord(engine="x", steps=1, accepted=0, repetitive=seen)
        for seen in (True, False, None)
    ]
    sums = totals(records, 0)
    assert (sums.count("repetitive"), sums.count("text_seen")) == (1, 2)


def test_chunks_are_set_against_the_tokens_of_streams_alone() -> None:
    records = [
        AcceptanceRecord(engine="x", steps=1, accepted=0, completion_tokens=126, chunks=48),
        AcceptanceRecord(engine="x", steps=1, accepted=0, completion_tokens=50),
    ]
    sums = totals(records, 0)
    assert (sums.count("chunks"), sums.count("chunked_tokens")) == (48, 126)


@given(requests(), st.integers(0, 5))
def test_a_row_does_not_depend_on_its_neighbours(drawn: tuple[int, list[Steps]], cut: int) -> None:
    k, answers = drawn
    records = [validated(of_steps(steps, k)) for steps in answers]
    together = tabulate(records, k)
    apart = np.concatenate([tabulate(records[:cut], k), tabulate(records[cut:], k)])
    np.testing.assert_array_equal(together, apart)


def test_a_long_stream_keeps_few_rows_and_exact_sums() -> None:
    sums = Totals.empty(1)
    for size in range(1, 1001):
        sums = sums.with_rows(tabulate([of_known(size)], 1))
    assert len(sums.rows) <= MOST_CLUSTERS
    assert sums.count("steps") == sum(range(1, 1001))
    assert sums.count("records") == 1000


def of_known(steps: int) -> AcceptanceRecord:
    return validated(AcceptanceRecord(engine="x", k=1, histogram=(steps, 0), drafted=steps))
