"""Which sums agree, by how much the others do not, and why that can be."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.acceptance.figures import segment_figures
from outrider.acceptance.reconciliation import (
    ACCEPTED,
    DRAFTED,
    REQUESTS,
    STEPS,
    TOKENS,
    Identity,
    reconcile,
)
from outrider.acceptance.totals import Totals
from outrider.records.reading import AcceptanceRecord
from outrider.records.tabulate import tabulate
from outrider.records.validation import validated


def identities(*records: AcceptanceRecord) -> dict[str, Identity]:
    k = records[0].k or 0
    totals = Totals.empty(k).with_rows(tabulate([validated(r) for r in records], k))
    figures = segment_figures(totals, rng=np.random.default_rng(0), draws=10)
    return {identity.name: identity for identity in reconcile(totals, figures)}


def record(**fields: Any) -> AcceptanceRecord:
    return AcceptanceRecord(**{"engine": "vllm", "steps": 43, "accepted": 63, **fields})


def test_tokens_that_steps_explain_exactly_need_no_cause() -> None:
    identity = identities(record(completion_tokens=106))[TOKENS]
    assert (identity.left, identity.right, identity.gap, identity.holds) == (106, 106, 0, True)
    assert identity.detail == "106 tokens, all explained"
    assert identity.causes == ()


def test_more_tokens_come_from_prefill_first_and_from_steps_without_a_draft_next() -> None:
    answers = [record(completion_tokens=106 + extra) for extra in (1, 1, 10)]
    identity = identities(*answers)[TOKENS]
    assert (identity.gap, identity.holds) == (12, False)
    assert "12 more in all 3 records" in identity.detail
    assert "alone explains 3 of 12" in identity.detail
    assert "prefill" in identity.causes[0]
    assert "without a draft" in identity.causes[1]


def test_the_first_tokens_explain_no_more_than_the_gap() -> None:
    answers = [record(completion_tokens=106 + extra) for extra in (1, 1, 0)]
    assert "alone explains 2 of 2" in identities(*answers)[TOKENS].detail


def test_one_first_token_is_expected_of_each_request_of_a_scrape() -> None:
    scrape = record(completion_tokens=206, requests=40)
    assert "alone explains 40 of 100" in identities(scrape)[TOKENS].detail
    unknown = record(completion_tokens=206, requests=None)
    assert "explains 1 of 100 if each record is one answer" in identities(unknown)[TOKENS].detail


def test_steps_without_a_draft_are_counted_where_they_are_recorded() -> None:
    identity = identities(record(completion_tokens=112, decode_steps=48))[TOKENS]
    assert "5 of them are recorded" in identity.causes[1]


def test_fewer_tokens_were_accepted_past_the_end() -> None:
    # Reported with vLLM: 4,816 drafts of 7, 12,208 accepted, 16,990 tokens of output.
    identity = identities(
        record(k=7, steps=4816, drafted=33712, accepted=12208, completion_tokens=16990)
    )[TOKENS]
    assert (identity.left, identity.right, identity.gap) == (16990, 17024, -34)
    assert "at least 34 accepted tokens are in no answer" in identity.detail
    assert "past a stop" in identity.causes[0]
    assert "aborted" in identity.causes[1]
    assert any("padded or filler" in cause for cause in identity.causes)


@pytest.mark.parametrize(("extra", "first"), [((9, -2), "prefill"), ((2, -9), "past a stop")])
def test_gaps_of_both_signs_do_not_cancel_and_the_larger_one_leads(
    extra: tuple[int, int], first: str
) -> None:
    identity = identities(*[record(completion_tokens=106 + more) for more in extra])[TOKENS]
    assert identity.gap == sum(extra)
    assert f"{max(extra)} more in 1 of 2 records" in identity.detail
    assert f"{-min(extra)} fewer in 1 of 2 records" in identity.detail
    assert first in identity.causes[0]


def test_gaps_that_cancel_out_still_do_not_hold() -> None:
    identity = identities(*[record(completion_tokens=106 + more) for more in (3, -3)])[TOKENS]
    assert (identity.gap, identity.holds) == (0, False)


def test_only_records_that_tell_both_are_compared() -> None:
    identity = identities(record(completion_tokens=106), record())[TOKENS]
    assert identity.holds is True
    assert "over the 1 of 2 records that tell both" in identity.detail


def test_unknown_tokens_are_neither_a_gap_nor_agreement() -> None:
    identity = identities(record())[TOKENS]
    assert (identity.left, identity.gap, identity.holds) == (None, None, None)
    assert "without a count of completion tokens" in identity.detail


def test_steps_estimated_from_tokens_cannot_check_them() -> None:
    identity = identities(record(completion_tokens=106, steps_basis="estimated"))[TOKENS]
    assert identity.holds is None
    assert "cannot check each other" in identity.detail


def test_full_drafts_hold_and_say_what_that_means_of_a_lookup() -> None:
    identity = identities(record(k=5, drafted=215))[DRAFTED]
    assert (identity.left, identity.right, identity.holds) == (215, 215, True)
    assert "filler" in identity.detail
    assert identity.causes == ()
    single = identities(record(k=1, accepted=3, drafted=43))[DRAFTED]
    assert "filler" not in single.detail


def test_an_answer_that_never_drafted_holds_without_a_word_on_full_drafts() -> None:
    identity = identities(record(k=3, steps=0, accepted=0, drafted=0))[DRAFTED]
    assert (identity.holds, identity.detail) == (True, "no step had a draft")


def test_short_drafts_are_told_with_their_mean_length_and_causes() -> None:
    identity = identities(record(k=5, drafted=129))[DRAFTED]
    assert (identity.gap, identity.holds) == (-86, False)
    assert "short by 86, 3.00 per step with K = 5" in identity.detail
    told = " ".join(identity.causes)
    for cause in ("lookup", "adaptive", "grammar", "token budget"):
        assert cause in told


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"drafted": 129}, "K is unknown"),
        ({"k": 5}, "without a count of drafted"),
        ({"k": 5, "drafted": 215, "drafted_basis": "nominal"}, "D is nominal in 1 record"),
        ({"k": 5, "drafted": 215, "steps_basis": "estimated"}, "steps are estimated"),
    ],
)
def test_drafts_cannot_be_checked_where_a_side_is_unknown(
    fields: dict[str, Any], reason: str
) -> None:
    identity = identities(record(**fields))[DRAFTED]
    assert identity.holds is None
    assert identity.gap is None
    assert reason in identity.detail


def test_a_histogram_agrees_with_both_of_its_sums() -> None:
    found = identities(record(k=5, histogram=(11, 14, 11, 4, 0, 3)))
    assert (found[STEPS].left, found[STEPS].holds) == (43, True)
    assert (found[ACCEPTED].left, found[ACCEPTED].holds) == (63, True)


def test_a_histogram_missing_in_part_is_unknown_and_says_how_much_is_there() -> None:
    found = identities(record(k=5, histogram=(11, 14, 11, 4, 0, 3)), record(k=5))
    assert found[STEPS].holds is None
    assert "1 of 2 records without a histogram; the others hold 43 of 86" in found[STEPS].detail
    assert "hold 63 of 126" in found[ACCEPTED].detail


def test_records_that_do_not_tell_their_requests_are_counted() -> None:
    found = identities(record(), record(requests=None))
    assert found[REQUESTS].holds is None
    assert found[REQUESTS].detail.startswith("1 of 2 records")
    assert REQUESTS not in identities(record())


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 3), st.integers(-5, 20)),
        min_size=1,
        max_size=8,
    )
)
def test_a_gap_is_always_the_difference_of_its_sides(drawn: list[tuple[int, int, int]]) -> None:
    records = [
        record(
            k=3,
            steps=steps,
            accepted=min(accepted, 3 * steps),
            completion_tokens=max(0, steps + min(accepted, 3 * steps) + extra),
            drafted=3 * steps,
        )
        for steps, accepted, extra in drawn
    ]
    for identity in identities(*records).values():
        if identity.left is not None and identity.right is not None:
            assert identity.gap == identity.left - identity.right
            assert identity.detail
            assert bool(identity.causes) == (identity.holds is False)
        else:
            assert identity.holds is None
