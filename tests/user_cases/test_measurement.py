"""Cases 40 to 55: how it was measured, and what it is compared with."""

import json
from pathlib import Path

import pytest
from tests.user_cases.bodies import bench_result, llama_server, positions, scrape, sglang, vllm
from tests.user_cases.reading import (
    Reporter,
    causes,
    conditional,
    expectation,
    flags,
    identities,
    only,
    survival,
)

from outrider.acceptance.ratio_of_runs import welch_log_ratio
from outrider.acceptance.reconciliation import DRAFTED, TOKENS
from outrider.acceptance.tokens import peak_below_average
from outrider.errors import InvalidSetting
from outrider.report.acceptance.as_json import report_to_json
from outrider.report.acceptance.expected.asked import read_expected
from outrider.report.acceptance.gate import run_gate

BELOW_CARD = [20, 14, 10, 8, 6, 4, 2, 10]
"""M = 3.19 at K = 7."""


def test_a_peak_below_the_average_means_that_chunks_were_counted(report: Reporter) -> None:
    """Case 41, fixture 17."""
    assert peak_below_average(111.0, 414.75)
    segment = only(report(bench_result(max_output_tokens_per_s=111.0)))
    assert "several" in flags(segment)["chunks_counted_as_tokens"].detail
    assert "chunks_counted_as_tokens" not in flags(only(report(bench_result())))


def test_tokens_come_from_usage_and_never_from_the_chunks_of_a_stream(report: Reporter) -> None:
    """Cases 42 and 43, fixture 17: 5.51 tokens/s by chunks are 25.16 by usage."""
    body = vllm([10, 5, 5, 10], 96)
    last = {**body, "object": "chat.completion.chunk", "id": "s", "choices": []}
    events = [
        {
            "id": "s",
            "object": "chat.completion.chunk",
            "model": "m",
            "choices": [{"index": 0, "delta": {"content": "some text "}, "finish_reason": None}],
        }
    ] * 21
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in [*events, last])
    f = only(report(f"{stream}data: [DONE]\n\n")).figures
    assert f.completion_tokens == 96
    assert f.tokens_per_chunk == pytest.approx(96 / 21)
    assert f.tokens_per_chunk == pytest.approx(25.16 / 5.51, abs=0.01)


@pytest.mark.parametrize(("first", "flagged"), [(1, False), (4, True)])
def test_a_first_event_of_several_tokens_is_flagged(
    first: int, flagged: bool, report: Reporter
) -> None:
    """44: the first chunk bundles several tokens and inflates the tokens per second."""
    body = vllm([5, 5], 16)
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m"}
    events = [
        {
            **base,
            "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}],
            "usage": {"prompt_tokens": 5, "completion_tokens": tokens},
        }
        for text, tokens, reason in (("one two", first, None), (" more", 16, "stop"))
    ]
    events.append({**base, "choices": [], "usage": body["usage"], "metrics": body["metrics"]})
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    found = flags(only(report(stream)))
    assert ("first_chunk_of_several" in found) is flagged


def test_a_stream_that_does_not_tell_its_first_tokens_has_no_first_chunk(
    report: Reporter,
) -> None:
    """44: without usage on every event nothing is guessed from the text."""
    body = vllm([5, 5], 16)
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m"}
    events = [
        {
            **base,
            "choices": [{"index": 0, "delta": {"content": "a b"}, "finish_reason": "stop"}],
        },
        {**base, "choices": [], "usage": body["usage"], "metrics": body["metrics"]},
    ]
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    segment = only(report(stream))
    assert "first_chunk_of_several" not in flags(segment)
    assert segment.figures.tokens_per_chunk == 16


def test_chunks_that_reveal_accepted_tokens_have_their_unevenness_measured(
    report: Reporter,
) -> None:
    """Case 45: several tokens arrive in one event, and the cadence is uneven."""
    # The role of the answer, then five events: gaps of 10, 10, 10 and 50 ms, or of 20 ms each.
    uneven, even = [0.0001, 0.01, 0.01, 0.01, 0.05], [0.0001, 0.02, 0.02, 0.02, 0.02]
    detailed = {"backend": "openai-chat", "completed": 1, "output_lens": [16990]}
    found = only(report(bench_result(**detailed, itls=[uneven]))).figures
    assert found.cadence is not None
    assert found.cadence.mean_gap_ms.value == pytest.approx(20)
    assert found.cadence.gap_cv.value == pytest.approx(0.866, abs=5e-4)
    assert found.cadence.longest_gap_ms == pytest.approx(50)
    assert found.tokens_per_chunk == pytest.approx(16990 / 5)
    regular = only(report(bench_result(**detailed, itls=[even]))).figures.cadence
    assert regular is not None
    assert regular.mean_gap_ms.value == found.cadence.mean_gap_ms.value == pytest.approx(20)
    assert regular.gap_cv.value == pytest.approx(0, abs=1e-9)


def test_a_prompt_that_repeats_itself_is_flagged_and_its_spread_is_compared_unequal(
    report: Reporter,
) -> None:
    """Case 46, fixture 18: 99.9 % accepted; three runs on, three off."""
    ratio = welch_log_ratio([328, 348, 364], [281.6, 282.4, 283.1])
    assert ratio.on_variation == pytest.approx(0.052, abs=5e-4)
    assert ratio.off_variation == pytest.approx(0.0027, abs=5e-5)
    assert ratio.ratio_of_means == pytest.approx(1.228, abs=5e-4)
    assert ratio.high - ratio.low > 0.2
    body = vllm([0, 0, 1, 400], 1604)
    assert "suspiciously_perfect" in flags(only(report(body)))


def test_the_tokens_of_all_arms_come_from_the_same_counter(report: Reporter) -> None:
    """49: tokens of one arm were taken from its text, those of the other were counted."""
    short = report(vllm([5, 5], 16, text="x"), vllm([5, 5, 5], 31, text="x"))
    long = report(vllm([5, 5], 16, text="word " * 90), vllm([5, 5, 5], 31, text="y" * 900))
    for one, other in zip(short.segments, long.segments, strict=True):
        assert one.figures.completion_tokens == other.figures.completion_tokens
        assert one.figures.mean_acceptance_length == other.figures.mean_acceptance_length
        assert one.reconciliation == other.reconciliation


def test_positions_of_different_k_are_never_pooled(report: Reporter) -> None:
    """Case 50, fixture 19: the first position is accepted more often at K = 1 than at K = 8."""
    one = scrape({"drafts": [26407], "draft_tokens": [26407], "accepted_tokens": [22021]})
    counts = [8411, 6800, 5659, 4686, 4020, 3417, 3006, 2612]
    eight = scrape(
        {"drafts": [11043], "draft_tokens": [88344], "accepted_tokens": [38611]},
        created=1756740000.5,
    )
    found = report(one + positions([22021]), eight + positions(counts))
    assert found.pooled is None
    assert "K = 1, 8" in (found.pooled_refused or "")
    first, second = found.segments
    assert (first.figures.k, second.figures.k) == (1, 8)
    assert first.figures.mean_acceptance_length.value == pytest.approx(1.834, abs=5e-4)
    assert second.figures.mean_acceptance_length.value == pytest.approx(4.496, abs=5e-4)
    assert identities(second)[DRAFTED].holds is True
    assert sum(survival(second)) == pytest.approx(3.496, abs=5e-4)
    published = [0.7617, 0.6158, 0.5125, 0.4243, 0.3640, 0.3094, 0.2722, 0.2365]
    assert survival(second) == pytest.approx(published, abs=1e-4)
    assert conditional(second) == pytest.approx(
        [0.762, 0.808, 0.832, 0.828, 0.858, 0.850, 0.880, 0.869], abs=1e-3
    )


def test_a_drop_of_the_mean_length_between_versions_fails_a_gate(report: Reporter) -> None:
    """Case 51, fixture 20: 3.53 before; and 34 tokens were accepted past the end."""
    found = report(bench_result())
    segment = only(found)
    f = segment.figures
    assert f.k == 7
    assert f.mean_acceptance_length.value == pytest.approx(3.535, abs=5e-4)
    tokens = identities(segment)[TOKENS]
    assert (tokens.left, tokens.right, tokens.gap) == (16990, 17024, -34)
    assert [result.outcome for result in run_gate(found, "3.53")] == ["pass"]
    assert [result.outcome for result in run_gate(found, "3.6")] == ["fail"]


def test_fewer_drafts_at_the_same_rate_are_less_opportunity(report: Reporter) -> None:
    """Case 52: the server drafts 155 tokens where the command line drafts 195."""
    server = llama_server(200, 9000.0, draft_n=155, draft_n_accepted=124)
    command = llama_server(200, 9000.0, draft_n=195, draft_n_accepted=156)
    few, many = (only(report(body)).figures for body in (server, command))
    assert few.draft_acceptance_rate.value == many.draft_acceptance_rate.value == 0.8
    assert (few.drafted, many.drafted) == (155, 195)
    assert few.mean_acceptance_length.value is not None
    assert many.mean_acceptance_length.value is not None
    assert few.mean_acceptance_length.value < many.mean_acceptance_length.value


def test_acceptance_far_below_the_card_has_its_size_and_a_checklist(report: Reporter) -> None:
    """55: 2 to 3 where the drafter's card says 6."""
    bodies = [vllm([n, *BELOW_CARD[1:]], 300) for n in range(24, 40)]
    held = expectation(report(*bodies), "6,k=7,engine=sglang,dataset=mt-bench,temperature=0")
    assert held.outcome == "below"
    assert held.difference_tokens == pytest.approx(-3.0, abs=0.4)
    found = causes(held)
    assert [found[name].status for name in ("K", "engine", "counting")] == [
        "same",
        "differs",
        "ruled out",
    ]
    assert all(each.check for each in held.causes if each.status in ("differs", "not told"))


def test_a_mean_that_stays_the_same_at_a_larger_k_is_not_for_want_of_k(report: Reporter) -> None:
    """55: 2 to 3 at 4 as at 16 draft tokens, where 6 was expected."""
    bodies = [vllm([n, 12, 8, 4, 2], 90) for n in range(20, 28)]
    cause = causes(expectation(report(*bodies), "6,k=16"))["K"]
    assert cause.status == "differs"
    assert "so K alone explains at most" in cause.detail


def test_the_same_drafter_on_two_engines_is_held_against_itself(
    report: Reporter, tmp_path: Path
) -> None:
    """55: 3 on one engine, 5.5 on the other."""
    better = report(*(sglang([4, 5, 6, 8, 6, 9, 12, n]) for n in range(14, 22)))
    stored = tmp_path / "sglang.json"
    stored.write_text(json.dumps(report_to_json(better)), encoding="utf-8")
    here = report(*(vllm([n, *BELOW_CARD[1:]], 300) for n in range(20, 28)))
    held = expectation(here, str(stored))
    assert held.expected == pytest.approx(5.5, abs=0.1)
    assert held.outcome == "below"
    found = causes(held)
    assert "expected sglang, here vllm" in found["engine"].detail
    assert {found["K"].status, found["counting"].status} == {"same"}


def test_next_to_nothing_accepted_of_a_well_trained_drafter_is_broken(report: Reporter) -> None:
    """55: a training accuracy of 70 % promises 1/(1 − 0.7) = 3.3, and 1.02 is measured."""
    bodies = [vllm([98 + n, 2, 0, 0, 0, 0, 0, 0], 103 + n) for n in range(8)]
    held = expectation(report(*bodies), "3.3")
    assert held.outcome == "below"
    for word in ("broken drafter", "pair of checkpoints", "hidden states", "template"):
        assert word in held.text
    with pytest.raises(InvalidSetting, match="an acceptance rate is another figure"):
        read_expected("0.7")
