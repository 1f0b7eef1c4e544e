"""The figures of a segment: by hand, against the product limit, and against brute resampling."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.acceptance.figures import SegmentFigures, segment_figures
from outrider.acceptance.survival import product_limit_survival
from outrider.acceptance.totals import Totals
from outrider.records.cadence import cadence_of, longest_gap_ms
from outrider.records.reading import AcceptanceRecord, Basis, Cadence, Scope
from outrider.records.tabulate import tabulate
from outrider.records.validation import validated


def a_record(
    histogram: Sequence[int] | None = None,
    k: int | None = None,
    drafted: int | None = None,
    **fields: object,
) -> AcceptanceRecord:
    record = AcceptanceRecord(
        engine="any",
        k=k,
        histogram=histogram,
        drafted=drafted,
        **fields,  # type: ignore[arg-type]
    )
    return validated(record)


def totals_of(records: Sequence[AcceptanceRecord], k: int) -> Totals:
    longest = longest_gap_ms(record.cadence for record in records)
    return Totals.empty(k).with_rows(tabulate(records, k), longest_gap_ms=longest)


def figures_of(
    records: Sequence[AcceptanceRecord], k: int, *, unit: str = "requests", draws: int = 50
) -> SegmentFigures:
    rng = np.random.default_rng(3)
    return segment_figures(totals_of(records, k), rng=rng, unit=unit, draws=draws)


def survival(figures: SegmentFigures) -> list[float | None]:
    return [position.survival.value for position in figures.positions]


def conditional(figures: SegmentFigures) -> list[float | None]:
    return [position.conditional.value for position in figures.positions]


def test_a_server_summary_gives_the_figures_worked_out_by_hand() -> None:
    figures = figures_of([a_record([39, 1, 0, 3], k=3, drafted=129)], k=3)
    assert (figures.k, figures.steps, figures.accepted, figures.drafted) == (3, 43, 10, 129)
    assert (figures.wasted, figures.histogram) == (119, (39, 1, 0, 3))
    assert figures.mean_acceptance_length.value == pytest.approx(1.2326, abs=5e-5)
    assert figures.mean_acceptance_length.interval is None
    assert figures.mean_acceptance_length.reason == "a single record gives no interval"
    assert figures.draft_acceptance_rate.value == pytest.approx(0.0775, abs=5e-5)
    assert figures.immediate_failure_rate.value == pytest.approx(39 / 43)
    assert figures.full_draft_rate.value == pytest.approx(3 / 43)
    assert survival(figures) == pytest.approx([0.093, 0.070, 0.070], abs=5e-4)
    assert conditional(figures) == pytest.approx([0.093, 0.75, 1.0], abs=5e-4)
    assert [position.at_risk for position in figures.positions] == [43, 4, 3]
    assert [position.marginal for position in figures.positions] == survival(figures)
    # D = K * S leaves no draft shorter than K, so the summary tells every draft length.
    assert (figures.survival_estimator, figures.largest_position) == ("product_limit", 3)
    assert figures.coverage.value is None
    assert figures.coverage.reason == "no record tells its decode steps"
    assert figures.bands == ()
    assert figures.tokens_per_chunk is figures.repetitive_share is figures.completion_tokens is None


def test_a_long_answer_counts_once_by_request_and_by_its_steps_by_step() -> None:
    long = a_record([0, 0, 430, 0], k=3, drafted=1290)
    figures = figures_of([a_record([39, 1, 0, 3], k=3, drafted=129), long], k=3)
    assert figures.mean_acceptance_length_by_request.value == pytest.approx(2.116, abs=5e-4)
    assert figures.mean_acceptance_length.value == pytest.approx(2.839, abs=5e-4)


def test_short_drafts_without_their_lengths_give_tails_and_the_reason() -> None:
    figures = figures_of([a_record([11, 14, 11, 4, 0, 3], k=5, drafted=200)], k=5)
    assert survival(figures) == pytest.approx([0.744, 0.419, 0.163, 0.070, 0.070], abs=5e-4)
    assert conditional(figures)[3:] == pytest.approx([0.429, 1.0], abs=5e-4)
    assert figures.survival_estimator == "tail"
    assert figures.survival_reason == "the draft lengths of 43 of 43 steps are unknown"


def test_counters_by_position_give_their_conditional_acceptance() -> None:
    passed = np.rint(
        11043 * np.array([0.7617, 0.6158, 0.5125, 0.4243, 0.3640, 0.3094, 0.2722, 0.2365])
    ).astype(int)
    tails = [11043, *passed.tolist(), 0]
    histogram = [here - after for here, after in pairwise(tails)]
    server = a_record(histogram, k=8, drafted=88344, scope=Scope.SERVER, requests=None)
    figures = figures_of([server], k=8, unit="servers")
    assert conditional(figures) == pytest.approx(
        [0.762, 0.808, 0.832, 0.828, 0.858, 0.850, 0.880, 0.869], abs=1e-3
    )
    assert figures.mean_acceptance_length.value == pytest.approx(4.496, abs=1e-3)
    reason = "counters of a server do not tell requests apart"
    assert figures.mean_acceptance_length.reason == reason
    assert figures.mean_acceptance_length_by_request.value is None
    assert figures.mean_acceptance_length_by_request.reason == reason
    assert figures.requests is None


@st.composite
def listed_records(draw: st.DrawFn) -> tuple[int, list[list[tuple[int, int]]]]:
    k = draw(st.integers(1, 6))
    step = st.integers(1, k).flatmap(lambda d: st.tuples(st.integers(0, d), st.just(d)))
    return k, draw(st.lists(st.lists(step, min_size=1, max_size=12), min_size=1, max_size=6))


def of_steps(steps: Sequence[tuple[int, int]], k: int, **fields: object) -> AcceptanceRecord:
    accepted, drafted = [a for a, _ in steps], [d for _, d in steps]
    return a_record(
        np.bincount(accepted, minlength=k + 1).tolist(),
        k,
        sum(drafted),
        per_step_accepted=accepted,
        per_step_drafted=drafted,
        **fields,
    )


def test_all_lengths_of_steps_give_the_product_limit_with_the_tails_beside_it() -> None:
    figures = figures_of([of_steps([(1, 1), (0, 3), (3, 3), (1, 3)], k=3)], k=3)
    assert conditional(figures) == pytest.approx([3 / 4, 1 / 2, 1])
    assert survival(figures) == pytest.approx([3 / 4, 3 / 8, 3 / 8])
    assert [p.naive.value for p in figures.positions] == pytest.approx([3 / 4, 1 / 4, 1 / 4])
    assert figures.survival_reason is None


@given(listed_records())
@settings(max_examples=80, deadline=None)
def test_random_steps_give_the_exact_product_limit(
    case: tuple[int, list[list[tuple[int, int]]]],
) -> None:
    k, answers = case
    figures = figures_of([of_steps(steps, k) for steps in answers], k, draws=2)
    steps = [step for answer in answers for step in answer]
    expected = product_limit_survival([a for a, _ in steps], [d for _, d in steps], k)
    assert figures.survival_estimator == "product_limit"
    for position, exact in zip(figures.positions, expected, strict=True):
        assert position.at_risk == exact.at_risk
        for estimate, fraction in (
            (position.conditional, exact.conditional),
            (position.survival, exact.survival),
        ):
            assert estimate.value == (None if fraction is None else pytest.approx(float(fraction)))
            assert estimate.value is not None or estimate.reason
        tail = sum(a >= position.position for a, _ in steps) / len(steps)
        assert position.naive.value == pytest.approx(tail)
    reached = [exact.position for exact in expected if exact.at_risk]
    assert figures.largest_position == max(reached)


def test_a_step_whose_draft_the_grammar_removed_is_never_at_risk() -> None:
    figures = figures_of([of_steps([(0, 0), (1, 1), (0, 1)], k=1)], k=1)
    assert conditional(figures) == [0.5]
    assert figures.positions[0].naive.value == pytest.approx(1 / 3)


def test_intervals_are_those_of_resampled_records() -> None:
    rng = np.random.default_rng(11)
    answers = [
        [(int(rng.binomial(4, share)), 4) for _ in range(rng.integers(10, 60))]
        for share in rng.beta(2, 2, size=60)
    ]
    records = [of_steps(steps, 4) for steps in answers]
    figures = segment_figures(totals_of(records, 4), rng=np.random.default_rng(1), draws=4000)
    means, conditionals = [], []
    for _ in range(4000):
        drawn = [answers[i] for i in rng.integers(60, size=60)]
        accepted = np.array([a for answer in drawn for a, _ in answer])
        means.append(1 + accepted.mean())
        conditionals.append((accepted >= 3).sum() / (accepted >= 2).sum())
    for estimate, figure in (
        (figures.mean_acceptance_length, means),
        (figures.positions[2].conditional, conditionals),
    ):
        assert estimate.interval is not None
        low, high = np.quantile(figure, (0.025, 0.975))
        # The interval is expanded for 60 clusters by about 3 %.
        assert estimate.interval.low == pytest.approx(low, abs=0.08 * (high - low))
        assert estimate.interval.high == pytest.approx(high, abs=0.08 * (high - low))


def test_drafted_tokens_of_one_record_unknown_leave_the_rate_unknown() -> None:
    figures = figures_of([a_record([1, 1], k=1, drafted=2), a_record([3, 1], k=1)], k=1)
    assert figures.drafted is figures.wasted is figures.draft_acceptance_rate.value is None
    assert "unknown" in (figures.draft_acceptance_rate.reason or "")
    assert figures.mean_acceptance_length.value == pytest.approx(1 + 2 / 6)


@pytest.mark.parametrize("basis", ["nominal", "counted"])
def test_nominal_drafted_tokens_give_a_marked_rate(basis: Basis) -> None:
    figures = figures_of([a_record([4, 6], k=1, drafted=10, drafted_basis=basis)], k=1)
    assert figures.draft_acceptance_rate.value == pytest.approx(0.6)
    assert figures.drafted_nominal == (basis == "nominal")
    # K * S is no evidence that every draft was full unless it was counted.
    assert figures.survival_estimator == ("tail" if basis == "nominal" else "product_limit")


def test_an_unknown_k_has_tails_of_what_was_seen_and_no_full_draft_rate() -> None:
    figures = figures_of([a_record([5, 3, 2, 0, 0])], k=0)
    assert (figures.k, figures.histogram, figures.survival_estimator) == (None, (5, 3, 2), "tail")
    assert survival(figures) == pytest.approx([0.5, 0.2])
    assert (figures.full_draft_rate.value, figures.full_draft_rate.reason) == (None, "K is unknown")
    assert figures.immediate_failure_rate.value == pytest.approx(0.5)


def test_a_histogram_of_a_part_of_the_steps_is_not_shown_as_the_whole() -> None:
    figures = figures_of([a_record([4, 6], k=1), a_record(None, k=1, steps=5, accepted=2)], k=1)
    assert (figures.histogram, figures.positions, figures.largest_position) == (None, (), None)
    assert figures.immediate_failure_rate.value is figures.full_draft_rate.value is None
    assert "histogram" in (figures.immediate_failure_rate.reason or "")
    assert figures.mean_acceptance_length.value == pytest.approx(1 + 8 / 15)


def test_a_record_without_steps_hides_nothing_of_the_others() -> None:
    figures = figures_of([a_record([4, 6], k=1), a_record(None, k=1, steps=0, accepted=0)], k=1)
    assert figures.histogram == (4, 6)
    assert figures.mean_acceptance_length_by_request.value == pytest.approx(1.6)


def test_no_step_at_all_is_zero_steps_and_unknown_figures() -> None:
    figures = figures_of([a_record([0, 0, 0], k=2, drafted=0)] * 3, k=2)
    assert (figures.steps, figures.drafted, figures.wasted) == (0, 0, 0)
    assert figures.mean_acceptance_length.value is None
    assert figures.mean_acceptance_length.reason == "no step had a draft (S = 0)"
    assert figures.draft_acceptance_rate.reason == "nothing was drafted (D = 0)"
    assert survival(figures) == [None, None]
    assert figures.largest_position is None


def test_no_record_at_all_has_no_figure() -> None:
    figures = segment_figures(Totals.empty(3), rng=np.random.default_rng(0))
    assert (figures.records, figures.clusters, figures.histogram) == (0, 0, None)
    assert figures.mean_acceptance_length.value is None


def test_positions_that_no_step_reached_are_unknown_and_not_zero() -> None:
    figures = figures_of([a_record([10, 0, 0, 0], k=3, drafted=30)], k=3)
    assert survival(figures) == [0, 0, 0]
    assert conditional(figures) == [0, None, None]
    assert figures.positions[2].conditional.reason == "no step reached this position"
    assert figures.largest_position == 1


def test_estimated_counts_are_marked() -> None:
    llama = a_record(None, None, 347, steps=135, steps_basis="estimated", accepted=65)
    figures = figures_of([llama], k=0)
    assert (figures.steps_estimated, figures.accepted_estimated) == (True, False)
    assert figures.mean_acceptance_length.value == pytest.approx(1.48, abs=5e-3)
    assert figures.draft_acceptance_rate.value == pytest.approx(0.187, abs=5e-4)
    assert (figures.histogram, figures.positions) == (None, ())


def test_coverage_is_over_the_records_that_tell_their_decode_steps() -> None:
    records = [a_record([4, 6], k=1, decode_steps=40), a_record([100, 0], k=1)]
    assert figures_of(records, k=1).coverage.value == pytest.approx(0.25)


def test_bands_show_acceptance_early_and_late_in_the_answer() -> None:
    # The prefill gives token 0; each early step accepts one and emits two: 1, 3, ..., 31, 33.
    figures = figures_of([of_steps([(1, 1)] * 16 + [(0, 1)] * 10, k=1)], k=1)
    assert [(b.start, b.end, b.steps) for b in figures.bands] == [(0, 32, 16), (32, 128, 10)]
    assert [b.mean_acceptance_length.value for b in figures.bands] == [2, 1]


def test_chunks_are_set_against_the_tokens_of_the_same_records() -> None:
    records = [
        a_record([4, 6], k=1, completion_tokens=16, chunks=10, repetitive=False),
        a_record([4, 6], k=1, completion_tokens=16, repetitive=True),
        a_record([4, 6], k=1, chunks=10),
    ]
    figures = figures_of(records, k=1)
    assert figures.tokens_per_chunk == pytest.approx(1.6)
    assert figures.repetitive_share == pytest.approx(1 / 3)
    assert (figures.completion_tokens, figures.explained_tokens) == (32, 32)


def test_each_answer_counts_once_in_the_gap_cv_and_each_gap_in_the_mean() -> None:
    uneven, even = cadence_of([[10, 10, 10, 50]]), cadence_of([[40, 40]])
    records = [a_record([4, 6], k=1, cadence=each) for each in (uneven, even, None)]
    cadence = figures_of(records, k=1).cadence
    assert cadence is not None
    assert (cadence.gaps, cadence.answers, cadence.longest_gap_ms) == (6, 2, 50)
    assert cadence.mean_gap_ms.value == pytest.approx(160 / 6)
    assert cadence.gap_cv.value == pytest.approx((300**0.5 / 20 + 0) / 2)
    assert figures_of(records[2:], k=1).cadence is None


def test_the_cadence_has_intervals_over_answers() -> None:
    cadences = [cadence_of([[10, 10 + 5 * number, 20]]) for number in range(12)]
    records = [a_record([4, 6], k=1, cadence=each) for each in cadences]
    found = figures_of(records, k=1, draws=500).cadence
    assert found is not None
    for figure in (found.mean_gap_ms, found.gap_cv):
        assert figure.value is not None
        assert figure.interval is not None
        assert figure.interval.low < figure.value < figure.interval.high


def test_gaps_of_all_answers_together_have_no_cv() -> None:
    pooled = Cadence(answers=0, gap_cv_sum=0, gaps=9, gap_sum_ms=180, longest_gap_ms=50)
    cadence = figures_of([a_record([4, 6], k=1, cadence=pooled)], k=1).cadence
    assert cadence is not None
    assert (cadence.mean_gap_ms.value, cadence.longest_gap_ms) == (20, 50)
    assert cadence.gap_cv.value is None
    assert "gaps of single answers" in (cadence.gap_cv.reason or "")


def test_records_of_several_requests_have_no_mean_by_request() -> None:
    figures = figures_of([a_record([40, 60], k=1, requests=10)], k=1)
    assert figures.mean_acceptance_length_by_request.value is None
    assert figures.mean_acceptance_length.reason == (
        "a single record of several requests does not tell them apart"
    )
    assert figures.requests == 10


def test_records_of_a_single_cluster_have_no_interval() -> None:
    rows = tabulate([a_record([4, 6], k=1), a_record([5, 5], k=1)], 1)
    totals = Totals.empty(1).with_rows(rows, ["prompt", "prompt"])
    figures = segment_figures(totals, rng=np.random.default_rng(0))
    assert (figures.records, figures.clusters) == (2, 1)
    reason = "all records are of one cluster, which gives no interval"
    assert figures.mean_acceptance_length.reason == reason
