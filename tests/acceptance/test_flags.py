"""Each flag fires on its case with the figures, and on nothing that is in order."""

from typing import Any

import numpy as np
import pytest

from outrider.acceptance.figures import segment_figures
from outrider.acceptance.flags import RULES, Flag, find_flags
from outrider.acceptance.totals import Totals
from outrider.records.reading import AcceptanceRecord
from outrider.records.tabulate import tabulate
from outrider.records.validation import validated


def flags_of(*records: AcceptanceRecord, **tags: str) -> dict[str, Flag]:
    k = records[0].k or 0
    totals = Totals.empty(k).with_rows(tabulate([validated(r) for r in records], k))
    figures = segment_figures(totals, rng=np.random.default_rng(0), draws=500)
    return {flag.code: flag for flag in find_flags(figures, totals, tags=tags)}


def record(histogram: tuple[int, ...], **fields: Any) -> AcceptanceRecord:
    """A request whose drafts were all full, unless the fields say otherwise."""
    k = len(histogram) - 1
    full: dict[str, Any] = {"k": k, "drafted": k * sum(histogram)}
    return AcceptanceRecord(engine="vllm", histogram=histogram, **{**full, **fields})


def stepwise(lengths: list[tuple[int, int]], k: int) -> AcceptanceRecord:
    accepted = [a for a, _ in lengths]
    return AcceptanceRecord(
        engine="vllm",
        k=k,
        histogram=[accepted.count(j) for j in range(k + 1)],
        drafted=sum(d for _, d in lengths),
        per_step_accepted=accepted,
        per_step_drafted=[d for _, d in lengths],
    )


# n-gram with K = 3 on vLLM 0.32: the sums of 56 answers, spread over eight of them.
NGRAM = [
    record(
        tuple((total + place) // 8 for total in (1295, 201, 114, 392)),
        drafted=3 * sum((total + place) // 8 for total in (1295, 201, 114, 392)) - 7,
        completion_tokens=643,
        requests=1,
    )
    for place in range(8)
]


def test_an_ordinary_run_has_no_flag() -> None:
    assert flags_of(*NGRAM, method="ngram") == {}


def test_a_healthy_drafter_has_no_flag() -> None:
    healthy = [record((30 + n, 20, 20, 30), completion_tokens=255) for n in range(6)]
    assert flags_of(*healthy, method="eagle") == {}


def test_one_accepted_of_633_is_a_broken_drafter_and_not_low_acceptance() -> None:
    flag = flags_of(record((210, 1, 0, 0), drafted=633))["broken_drafter"]
    assert "broken drafter, not low acceptance: 1 accepted of 633 drafted" in flag.detail
    for word in ("chat template", "tokenizer", "weights", "quantisation", "target layers"):
        assert word in flag.check


def test_steps_stand_in_for_drafted_tokens_that_nobody_counted() -> None:
    broken = record((210, 1, 0, 0), drafted=None)
    assert "the drafts of 211 steps" in flags_of(broken)["broken_drafter"].detail
    nominal = record((210, 1, 0, 0), drafted_basis="nominal")
    assert "the drafts of 211 steps" in flags_of(nominal)["broken_drafter"].detail


@pytest.mark.parametrize(
    "histogram",
    [(32, 1, 0, 0), (200, 7, 0, 0), (20, 0, 0, 0)],
    ids=["99 drafted", "1.1 % accepted", "too little to tell"],
)
def test_low_acceptance_is_not_a_broken_drafter(histogram: tuple[int, ...]) -> None:
    assert "broken_drafter" not in flags_of(record(histogram))


def test_a_lookup_that_finds_nothing_is_wasted_but_not_broken() -> None:
    flags = flags_of(record((300, 0, 0, 0)), method="ngram")
    assert "broken_drafter" not in flags
    assert "everything beyond position 0 of 3 is wasted" in flags["wasted_tail"].detail


def test_a_broken_drafter_is_not_told_of_its_tail_as_well() -> None:
    assert "wasted_tail" not in flags_of(record((300, 0, 0, 0)), method="eagle")


def test_nothing_or_everything_with_repetitive_text_is_a_corrupted_run() -> None:
    flags = flags_of(record((50, 0, 0, 0, 50), repetitive=True))
    assert (
        "of 100 steps 50 accepted nothing, 50 all 4 and only 0 something in between"
        in flags["all_or_nothing"].detail
    )
    assert "a corrupted run" in flags["all_or_nothing"].detail
    assert "NaN logits" in flags["all_or_nothing"].check
    assert "corrupted_output" in flags


@pytest.mark.parametrize("repetitive", [None, False])
def test_nothing_or_everything_in_sound_text_is_two_kinds_of_prompt(
    repetitive: bool | None,
) -> None:
    flags = flags_of(record((50, 0, 0, 0, 50), repetitive=repetitive))
    assert "two kinds of prompt" in flags["all_or_nothing"].detail
    assert "corrupted_output" not in flags


@pytest.mark.parametrize(
    "histogram",
    [(50, 50), (9, 0, 9), (91, 0, 9), (47, 6, 47)],
    ids=["K = 1 has nothing else", "18 steps", "hardly anything accepted", "6 % in between"],
)
def test_a_histogram_without_two_heavy_ends_is_not_all_or_nothing(
    histogram: tuple[int, ...],
) -> None:
    assert "all_or_nothing" not in flags_of(record(histogram))


def test_text_that_repeats_itself_in_most_answers_is_corrupted_output() -> None:
    seen = [record((5, 5), repetitive=n < 6) for n in range(10)]
    assert "the text of 6 of 10 answers" in flags_of(*seen)["corrupted_output"].detail
    half = [record((5, 5), repetitive=n < 5) for n in range(10)]
    assert "corrupted_output" not in flags_of(*half)


def test_one_text_that_was_looked_at_does_not_speak_for_all_others() -> None:
    one = [record((5, 5), repetitive=None if n else True) for n in range(10)]
    assert "corrupted_output" not in flags_of(*one)


def test_acceptance_above_99_percent_over_many_steps_is_suspicious() -> None:
    flag = flags_of(record((0, 0, 0, 120)))["suspiciously_perfect"]
    assert "360 of 360 drafted tokens accepted (100.0 %) in 120 steps" in flag.detail
    assert "replayed" not in flag.detail
    assert "suspiciously_perfect" not in flags_of(record((0, 0, 0, 99)))
    assert "suspiciously_perfect" not in flags_of(record((2, 0, 0, 198)))


def test_perfect_acceptance_that_the_answer_does_not_show_is_replayed_drafts() -> None:
    flag = flags_of(record((0, 0, 0, 120), completion_tokens=240))["suspiciously_perfect"]
    assert "only 240 of the 480 tokens" in flag.detail
    assert "replayed" in flag.detail


def test_perfect_acceptance_with_few_tokens_per_step_may_be_replayed_drafts() -> None:
    llama = AcceptanceRecord(
        engine="llama.cpp",
        steps=900,
        steps_basis="estimated",
        accepted=100,
        drafted=100,
        completion_tokens=1000,
    )
    assert "M is only 1.11" in flags_of(llama)["suspiciously_perfect"].detail


def test_decode_steps_without_a_draft_are_low_coverage() -> None:
    low = [record((5, 5), decode_steps=25) for _ in range(6)]
    assert "40.0 % of decode steps had a draft (60 of 150)" in flags_of(*low)["low_coverage"].detail
    half = [record((5, 5), decode_steps=20) for _ in range(6)]
    assert "low_coverage" not in flags_of(*half)


def test_tokens_that_no_step_explains_bound_the_coverage_from_above() -> None:
    # 10 steps emit 15 tokens, the prefill 1; 24 more need a step each.
    low = [record((5, 5), completion_tokens=40) for _ in range(6)]
    detail = flags_of(*low)["low_coverage"].detail
    assert "90 of 234 decoded tokens (38.5 %)" in detail
    assert "at most 29.4 % of decode steps" in detail


def test_the_first_token_of_each_answer_is_no_gap_in_coverage() -> None:
    one = [record((1,) + (0,) * 2 + (1,), completion_tokens=6) for _ in range(8)]
    assert "low_coverage" not in flags_of(*one)


def test_coverage_is_not_bounded_by_records_of_which_some_tell_no_tokens() -> None:
    mixed = [record((5, 5), completion_tokens=40), record((5, 5))]
    assert "low_coverage" not in flags_of(*mixed)


def test_positions_where_nothing_was_accepted_are_a_wasted_tail() -> None:
    # vLLM's log line: 65 drafts of 15, positions .600 .385 .215 .108 .062 and ten zeros.
    histogram = (26, 14, 11, 7, 3, 4, *(0,) * 10)
    flag = flags_of(record(histogram))["wasted_tail"]
    assert "everything beyond position 5 of 15 is wasted" in flag.detail
    assert "0.0 % of 65 steps" in flag.detail
    assert "if drafts were that long" not in flag.detail
    assert flag.check == "compare K = 5 with K = 15"


def test_a_small_sample_does_not_call_a_tail_wasted() -> None:
    assert "wasted_tail" not in flags_of(record((20, 29, 0)))
    assert "wasted_tail" in flags_of(record((20, 30, 0)))


def test_positions_that_few_steps_reach_are_a_wasted_tail() -> None:
    answers = [record((60, 40, n % 2 + 1)) for n in range(12)]
    detail = flags_of(*answers)["wasted_tail"].detail
    assert "everything beyond position 1 of 2 is wasted" in detail
    assert "(at most " in detail


def test_positions_that_no_draft_reached_are_not_wasted() -> None:
    short = [stepwise([(2, 2), (1, 2), (0, 2), (2, 2)] * 5, 5) for _ in range(6)]
    assert "wasted_tail" not in flags_of(*short)


def test_a_tail_of_unknown_draft_lengths_is_wasted_only_if_they_were_that_long() -> None:
    detail = flags_of(record((60, 40, 0), drafted=None))["wasted_tail"].detail
    assert detail.endswith("if drafts were that long")


def test_nominal_drafted_counts_are_said_to_bound_the_rate() -> None:
    some = [record((5, 5), drafted_basis="nominal"), record((5, 5))]
    detail = flags_of(*some)["nominal_drafted"].detail
    assert "1 of 2 records" in detail
    assert "lower bound" in detail


def test_estimated_steps_make_m_an_estimate() -> None:
    llama = AcceptanceRecord(
        engine="llama.cpp", steps=135, steps_basis="estimated", accepted=65, drafted=347
    )
    detail = flags_of(llama)["estimated_steps"].detail
    assert detail.startswith("steps are worked out from other numbers in 1 of 1 record")


@pytest.mark.parametrize("code", ["chunks_counted_as_tokens", "counters_reset"])
def test_a_warning_of_the_source_becomes_a_flag(code: str) -> None:
    assert code in flags_of(*NGRAM, **{code: "yes"})
    assert code not in flags_of(*NGRAM, **{code: "no"})


def test_four_requests_are_too_few_and_five_are_not() -> None:
    detail = flags_of(*NGRAM[:4])["too_few_requests"].detail
    assert "4 requests in 4 independent records" in detail
    assert "too_few_requests" not in flags_of(*NGRAM[:5])


def test_many_requests_in_one_scrape_still_have_no_interval() -> None:
    scrape = record((500, 300, 200), requests=400)
    detail = flags_of(scrape)["too_few_requests"].detail
    assert "400 requests in 1 independent record" in detail
    assert "one by one" in flags_of(scrape)["too_few_requests"].check


def test_records_of_unknown_request_count_are_judged_by_their_number() -> None:
    few = [record((500, 300, 200), requests=None) for _ in range(3)]
    assert "an unknown number of requests in 3" in flags_of(*few)["too_few_requests"].detail


def test_an_interval_as_wide_as_a_quarter_of_m_concludes_nothing() -> None:
    uneven = [record((10, 0, 0, 0)) for _ in range(3)] + [record((0, 0, 0, 10)) for _ in range(3)]
    assert "is only known as" in flags_of(*uneven)["too_few_requests"].detail


def test_weighting_matters_where_long_answers_accept_more() -> None:
    long = [record((200, 0, 0, 200)) for _ in range(30)]
    short = [record((8, 1, 0, 1)) for _ in range(30)]
    detail = flags_of(*long, *short)["weighting_matters"].detail
    assert detail.startswith("M is 2.")
    assert "longer answers accept more" in detail
    assert "weighting_matters" not in flags_of(*long)


def test_acceptance_that_falls_late_in_the_answer_is_dated() -> None:
    # Steps of three tokens up to position 128, then of one.
    answers = [stepwise([(2, 2)] * 43 + [(0, 2)] * (60 + n), 2) for n in range(8)]
    detail = flags_of(*answers)["late_acceptance"].detail
    assert "from token 128 on M is 1.0" in detail
    assert "at first 3.00" in detail
    even = [stepwise([(2, 2)] * 60, 2) for _ in range(8)]
    assert "late_acceptance" not in flags_of(*even)


def test_every_flag_says_what_to_check_and_brings_figures() -> None:
    cases = (
        flags_of(record((210, 1, 0, 0), drafted=633)),
        flags_of(record((50, 0, 0, 0, 50), repetitive=True, drafted_basis="nominal")),
        flags_of(record((0, 0, 0, 120), completion_tokens=240)),
        flags_of(*NGRAM, chunks_counted_as_tokens="yes", counters_reset="yes"),
    )
    for flag in (flag for case in cases for flag in case.values()):
        assert flag.check
        assert flag.code == "chunks_counted_as_tokens" or any(map(str.isdigit, flag.detail))


def test_a_segment_without_a_step_has_no_flag_but_of_its_size() -> None:
    assert flags_of(record((0, 0, 0), completion_tokens=1)).keys() == {"too_few_requests"}


def test_there_is_one_rule_for_each_code() -> None:
    assert len(set(RULES)) == len(RULES)
