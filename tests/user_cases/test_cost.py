"""Cases 21 to 39: speculation that is slower, and what a step costs."""

from typing import Any

import pytest
from tests.user_cases.bodies import vllm
from tests.user_cases.reading import Reporter, only

from outrider.acceptance.speed import speed_up
from outrider.acceptance.step_cost import fit_step_cost, parse_step_cost, step_cost_ratios
from outrider.acceptance.throughput_choice import choose_by_throughput
from outrider.acceptance.tokens import emitted_tokens_per_s


def test_speeds_come_from_the_tokens_that_each_arm_emitted() -> None:
    """Case 21, fixture 8: 947 tokens against 1,000."""
    assert emitted_tokens_per_s(1000, 14.3288) == pytest.approx(69.79, abs=5e-3)
    # Reported as 61.79; the quotient is 61.795.
    assert emitted_tokens_per_s(947, 15.3249) == pytest.approx(61.79, abs=6e-3)


def test_larger_k_that_is_slower_everywhere_loses_and_no_speed_up_is_claimed() -> None:
    """Case 22, fixture 9: three sizes of draft model, K = 3, 5, 10, and no baseline."""
    rows = {
        "4B": {3: 10.5, 5: 8.5, 10: 4.5},
        "1.7B": {3: 11.5, 5: 9.5, 10: 7.5},
        "0.6B": {3: 12.5, 5: 11.5, 10: 9.5},
    }
    choice = choose_by_throughput(rows)
    assert [segment.best_k for segment in choice.segments] == [3, 3, 3]
    assert [segment.speed_up for segment in choice.segments] == [None] * 3
    assert choice.never_worse_than_off is None
    assert max(rows, key=lambda size: rows[size][3]) == "0.6B"


def test_a_higher_mean_length_can_be_the_slower_setting() -> None:
    """Case 26, fixture 11: K = 2 beats K = 4."""
    rows = [(0, 128.64, 1.0), (2, 175.49, 1.89), (4, 165.65, 2.08)]
    ratios = step_cost_ratios(rows)
    assert ratios[2] == pytest.approx(1.385, abs=5e-4)
    assert ratios[4] == pytest.approx(1.615, abs=5e-4)
    line = fit_step_cost(rows).line
    assert line is not None
    assert line[1] == pytest.approx(0.115, abs=5e-4)
    first = choose_by_throughput({"first": {k: speed for k, speed, _ in rows}})
    second = choose_by_throughput({"second": {0: 133, 2: 201.69, 4: 198, 7: 169.92}})
    assert first.segments[0].best_k == second.segments[0].best_k == 2


def test_speculation_is_off_where_a_step_costs_more_than_it_yields(report: Reporter) -> None:
    """Case 31: 2.46 tokens per step at 3.6 times the cost."""
    found = report(
        *[vllm([30, 14, 36, 20], 247) for _ in range(8)], step_cost=parse_step_cost("0:1,3:3.6")
    )
    segment = only(found)
    assert segment.figures.mean_acceptance_length.value == pytest.approx(2.46)
    gain = speed_up(2.46, 3.6)
    assert gain is not None
    assert gain < 1
    assert segment.draft_length is not None
    assert segment.draft_length.best_k == 0


def test_rejected_drafts_are_no_output() -> None:
    """Case 32, fixture 14: 503 tokens emitted, 426 drafted, 384 of them accepted."""
    seconds = 426 / 19.86 + (503 - 384) / 14.68
    assert seconds == pytest.approx(29.56, abs=5e-3)
    assert emitted_tokens_per_s(503, seconds) == pytest.approx(17.02, abs=5e-3)
    with_rejected = emitted_tokens_per_s(503 + 426 - 384, seconds)
    assert with_rejected == pytest.approx(18.44, abs=5e-3)


def test_different_prefix_cache_hits_forbid_comparing_times_to_the_first_token(
    report: Reporter,
) -> None:
    """36: speculation lowers prefix-cache hits, or reports none."""

    def answer(k: int, cached: int) -> Any:
        body = vllm([5] * (k + 1), 30)
        body["usage"] |= {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": cached}}
        return body

    apart = report(answer(1, 80), answer(2, 0))
    assert [each.figures.cached_share for each in apart.segments] == [0.8, 0.0]
    assert any("times to the first token cannot be compared" in note for note in apart.notes)
    alike = report(answer(1, 80), answer(2, 80))
    assert not any("first token" in note for note in alike.notes)
