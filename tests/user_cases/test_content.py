"""Cases from 56 on: kinds of prompt, lengths of answers and the tail of a draft."""

import json

import pytest
from tests.user_cases.bodies import log_line, vllm
from tests.user_cases.reading import Reporter, flags, only

from outrider.acceptance.step_cost import parse_step_cost
from outrider.acceptance.throughput_choice import choose_by_throughput

ZEROS = ", ".join(["0.000"] * 10)
FIFTEEN = log_line("2.37", 89, 975, f"0.600, 0.385, 0.215, 0.108, 0.062, {ZEROS}")
SEVEN = log_line("2.91", 44, 161, "0.739, 0.478, 0.261, 0.174, 0.130, 0.087, 0.043")


def test_a_mixture_of_two_kinds_of_prompt_comes_out_by_itself(report: Reporter) -> None:
    """Case 58: a copy is accepted in full, prose not at all; the mean shows neither."""
    lines = [
        json.dumps({"kind": kind, "response": vllm(histogram, tokens)})
        for n in range(12)
        for kind, histogram, tokens in (
            ("prose", [50 + n, 0, 0, 1, 0], 55 + n),
            ("copy", [0, 1, 0, 0, 50 + n], 253 + 5 * n),
        )
    ]
    found = report("\n".join(lines))
    assert found.split is not None
    assert found.split.key == "kind"
    assert {segment.values["kind"] for segment in found.segments} == {"prose", "copy"}
    [whole] = found.whole
    assert "all_or_nothing" in flags(whole)


def test_each_kind_of_prompt_has_its_own_best_k() -> None:
    """Case 59, fixture 22."""
    speeds = {
        "essay": (14.29, 14.74, 13.61, 11.26),
        "code edit": (12.61, 15.16, 16.65, 17.55),
        "translation": (13.30, 15.77, 15.51, 14.97),
        "explanation": (13.69, 16.65, 17.49, 16.87),
    }
    choice = choose_by_throughput({name: dict(enumerate(by_k)) for name, by_k in speeds.items()})
    assert [segment.best_k for segment in choice.segments] == [1, 3, 1, 2]
    assert choice.global_k == 1
    assert choice.never_worse_than_off is True
    assert choice.segments[0].regret[3] == pytest.approx(1 - 11.26 / 14.74)


def test_acceptance_that_falls_late_in_long_answers_is_dated(report: Reporter) -> None:
    """Case 60: a drafter trained on short texts fails beyond them."""
    bodies = []
    for extra in range(6):
        accepted = [2] * 43 + [0] * (80 + extra)
        histogram = [accepted.count(j) for j in range(3)]
        bodies.append(
            vllm(
                histogram,
                sum(accepted) + len(accepted) + 1,
                per_step_accepted=accepted,
                per_step_drafted=[2] * len(accepted),
            )
        )
    assert "from token 128 on" in flags(only(report(*bodies)))["late_acceptance"].detail


def test_a_rate_of_9_percent_is_no_low_acceptance_but_a_tail_that_is_wasted(
    report: Reporter,
) -> None:
    """Case 63, fixture 24: 9.1 % at K = 15 and 27.3 % at K = 7 with lengths of 2.4 to 2.9."""
    found = report(FIFTEEN + SEVEN)
    assert "K = 7, 15" in (found.pooled_refused or "")
    seven, fifteen = found.segments
    assert (fifteen.figures.steps, seven.figures.steps) == (65, 23)
    assert fifteen.figures.draft_acceptance_rate.value == pytest.approx(0.091, abs=5e-4)
    assert seven.figures.draft_acceptance_rate.value == pytest.approx(0.273, abs=5e-4)
    assert fifteen.figures.mean_acceptance_length.value == pytest.approx(2.37, abs=5e-3)
    assert seven.figures.mean_acceptance_length.value == pytest.approx(2.91, abs=5e-3)
    wasted = flags(fifteen)["wasted_tail"]
    assert "everything beyond position 5 of 15 is wasted" in wasted.detail
    assert wasted.check == "compare K = 5 with K = 15"
    assert "broken_drafter" not in flags(fifteen)
    assert "wasted_tail" not in flags(seven)


def test_a_single_log_line_is_too_few_requests_and_has_no_interval(report: Reporter) -> None:
    """Case 63, fixture 24: the sample is small."""
    segment = only(report(FIFTEEN))
    m = segment.figures.mean_acceptance_length
    assert m.interval is None
    assert m.reason
    assert "too_few_requests" in flags(segment)


def test_a_tail_that_nothing_reaches_is_not_worth_its_cost(report: Reporter) -> None:
    """Case 63, fixture 24: at any cost per drafted token K is 5 at most."""
    found = report(FIFTEEN, step_cost=parse_step_cost("1,0.01"))
    choice = only(found).draft_length
    assert choice is not None
    assert 1 <= choice.best_k <= 5
