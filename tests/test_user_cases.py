"""Cases that people have reported in public, with the values that a right tool gives for them.

Each test has the number of its case in the project's collection of reports. Those about the engine
are tested with it.
"""

import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import pytest
from tests.records.probe.playing import PER_CHOICE, SWITCHED_OFF, Played, served

from outrider.acceptance.alarm_band import FixedBand, Limits, Side
from outrider.acceptance.estimate import Estimate
from outrider.acceptance.flags import Flag
from outrider.acceptance.ratio_of_runs import welch_log_ratio
from outrider.acceptance.reconciliation import DRAFTED, TOKENS, Identity
from outrider.acceptance.speed import speed_up
from outrider.acceptance.step_cost import (
    StepCost,
    fit_step_cost,
    parse_step_cost,
    step_cost_ratios,
)
from outrider.acceptance.throughput_choice import choose_by_throughput
from outrider.acceptance.tokens import emitted_tokens_per_s, peak_below_average
from outrider.errors import InvalidSetting
from outrider.records.adapters.registry import ADAPTERS
from outrider.records.collecting import Collection, Collector
from outrider.records.probe.exchange import Exchange
from outrider.records.probe.looking import look
from outrider.records.reading import AcceptanceRecord, Place
from outrider.records.sources.reader import read
from outrider.records.windows import Window
from outrider.report.acceptance.as_json import report_to_json
from outrider.report.acceptance.building import build_acceptance_report
from outrider.report.acceptance.document import AcceptanceReport, SegmentReport
from outrider.report.acceptance.expected.asked import read_expected
from outrider.report.acceptance.expected.expectation import Cause, Expectation
from outrider.report.acceptance.expected.holding import held_against
from outrider.report.acceptance.gate import run_gate
from outrider.report.probe.as_json import probe_to_json
from outrider.report.probe.document import build_probe_report
from outrider.report.watch.causes import CHECKS
from outrider.report.watch.watcher import Watcher

Reporter: TypeAlias = Callable[..., AcceptanceReport]


def collect(*names: str) -> Collection:
    collector = Collector()
    with httpx2.Client() as http:
        for place, reading in read(names, ADAPTERS, stdin=io.BytesIO(), http=http):
            collector.add(place, reading)
    return collector.finish()


@pytest.fixture
def report(tmp_path: Path) -> Reporter:
    """Reports on files with these contents, text as it is and all else as JSON."""

    def of(*contents: Any, step_cost: StepCost | None = None) -> AcceptanceReport:
        names = []
        for place, content in enumerate(contents):
            path = tmp_path / f"source-{place:02}"
            text = content if isinstance(content, str) else json.dumps(content)
            path.write_text(text, encoding="utf-8")
            names.append(str(path))
        return build_acceptance_report(collect(*names), sources=names, step_cost=step_cost)

    return of


def only(found: AcceptanceReport) -> SegmentReport:
    [segment] = found.whole or found.segments
    assert found.records.bad == ()
    return segment


def flags(segment: SegmentReport) -> dict[str, Flag]:
    return {flag.code: flag for flag in segment.flags}


def identities(segment: SegmentReport) -> dict[str, Identity]:
    return {identity.name: identity for identity in segment.reconciliation}


def values(figures: Sequence[Estimate]) -> list[float]:
    return [figure.value for figure in figures if figure.value is not None]


def survival(segment: SegmentReport) -> list[float]:
    return values([position.survival for position in segment.figures.positions])


def conditional(segment: SegmentReport) -> list[float]:
    return values([position.conditional for position in segment.figures.positions])


def vllm(histogram: Sequence[int], tokens: int, text: str = "...", **counted: Any) -> Any:
    """A response body of vLLM; drafts are full unless the fields say otherwise."""
    k, steps = len(histogram) - 1, sum(histogram)
    accepted = sum(j * n for j, n in enumerate(histogram))
    drafted = counted.get("num_draft_tokens", k * steps)
    return {
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
                "stop_reason": None,
            }
        ],
        "usage": {"prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": 20 + tokens},
        "metrics": {
            "speculative_decoding": {
                "mean_acceptance_length": 1 + accepted / steps,
                "draft_acceptance_rate": accepted / drafted,
                "acceptance_histogram": list(histogram),
                "num_spec_steps": steps,
                "num_accepted_draft_tokens": accepted,
                "num_draft_tokens": drafted,
                "num_spec_tokens": k,
                **counted,
            }
        },
    }


def tensorrt_llm(**counted: Any) -> Any:
    return {
        "id": "trt",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "..."},
                "finish_reason": "stop",
                **counted,
            }
        ],
        "usage": {"prompt_tokens": 12, "completion_tokens": 50, "total_tokens": 62},
    }


def llama_server(predicted: int, predicted_ms: float, **drafts: int) -> Any:
    return {
        "content": "...",
        "model": "m.gguf",
        "stop": True,
        "tokens_predicted": predicted,
        "timings": {
            "prompt_n": 21,
            "predicted_n": predicted,
            "predicted_ms": predicted_ms,
            **drafts,
        },
    }


def scrape(counts: Mapping[str, Sequence[int]], created: float = 1756736798.7) -> str:
    """A /metrics page: the counts of each engine by counter."""
    lines = []
    for name, by_engine in counts.items():
        lines.append(f"# TYPE vllm:spec_decode_num_{name}_total counter")
        for engine, count in enumerate(by_engine):
            labels = f'{{engine="{engine}",model_name="m"}}'
            lines.append(f"vllm:spec_decode_num_{name}_total{labels} {count}.0")
            lines.append(f"vllm:spec_decode_num_{name}_created{labels} {created}")
    return "\n".join(lines) + "\n"


def positions(counts: Sequence[int]) -> str:
    """The counters of accepted tokens by position of one engine."""
    return "".join(
        "vllm:spec_decode_num_accepted_tokens_per_pos_total"
        f'{{engine="0",model_name="m",position="{place}"}} {count}.0\n'
        for place, count in enumerate(counts)
    )


def bench_result(**figures: Any) -> Any:
    """A result file of `vllm bench serve`."""
    return {
        "date": "20260101-000000",
        "model_id": "m",
        "completed": 80,
        "total_input_tokens": 4000,
        "total_output_tokens": 16990,
        "request_throughput": 2.0,
        "output_throughput": 414.75,
        "max_output_tokens_per_s": 600.0,
        "spec_decode_acceptance_length": 1 + 12208 / 4816,
        "spec_decode_acceptance_rate": 100 * 12208 / 33712,
        "spec_decode_num_drafts": 4816,
        "spec_decode_draft_tokens": 33712,
        "spec_decode_accepted_tokens": 12208,
        **figures,
    }


def log_line(mean: str, accepted: int, drafted: int, rates: str) -> str:
    return (
        "(APIServer pid=7) INFO 11-30 21:50:29 [metrics.py:120] SpecDecoding metrics:"
        f" Mean acceptance length: {mean}, Accepted throughput: 10.21 tokens/s,"
        f" Drafted throughput: 25.49 tokens/s, Accepted: {accepted} tokens,"
        f" Drafted: {drafted} tokens, Per-position acceptance rate: {rates},"
        f" Avg Draft acceptance rate: {100 * accepted / drafted:.1f}%\n"
    )


SHORT_ANSWER = [39, 1, 0, 3]


def test_two_states_of_the_same_counters_are_never_added(report: Reporter) -> None:
    """Case 1: printed figures may be cumulative."""
    early = scrape({"drafts": [100], "draft_tokens": [300], "accepted_tokens": [120]})
    late = scrape({"drafts": [250], "draft_tokens": [750], "accepted_tokens": [300]})
    found = report(early, late)
    assert only(found).figures.steps == 250
    assert found.records.used == 1
    assert found.records.no_metrics == {"an earlier state of the same counters": 1}


def test_figures_of_a_single_answer_are_right_to_the_last_digit(report: Reporter) -> None:
    """Case 2, fixture 1."""
    f = only(segment := report(vllm(SHORT_ANSWER, 54))).figures
    assert (f.steps, f.accepted, f.drafted, f.wasted) == (43, 10, 129, 119)
    assert f.mean_acceptance_length.value == pytest.approx(1.2326, abs=5e-5)
    assert f.draft_acceptance_rate.value == pytest.approx(0.0775, abs=5e-5)
    assert survival(only(segment)) == pytest.approx([0.093, 0.070, 0.070], abs=5e-4)
    assert conditional(only(segment)) == pytest.approx([0.093, 0.75, 1.0], abs=5e-4)


@pytest.mark.parametrize("typed", ["[39, 1, 0, 3]", '{"histogram": [39, 1, 0, 3]}'])
def test_a_typed_histogram_gives_the_same_mean_and_no_invented_draft_count(typed: str) -> None:
    """Case 2, fixture 1, typed by hand."""
    f = only(build_acceptance_report(collect(typed), sources=[typed])).figures
    assert f.mean_acceptance_length.value == pytest.approx(1.2326, abs=5e-5)
    assert (f.drafted, f.wasted, f.draft_acceptance_rate.value) == (None, None, None)


def test_a_long_answer_weighs_more_by_step_than_by_request(report: Reporter) -> None:
    """Case 2, fixture 1: the pooled mean favours long answers."""
    f = only(report(vllm(SHORT_ANSWER, 54), vllm([0, 0, 430, 0], 1291))).figures
    assert f.mean_acceptance_length_by_request.value == pytest.approx(2.116, abs=5e-4)
    assert f.mean_acceptance_length.value == pytest.approx(2.839, abs=5e-4)


def test_five_identities_hold_for_a_sound_sglang_answer(report: Reporter) -> None:
    """Case 3, fixture 2."""
    body = {
        "id": "sg",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "..."},
                "finish_reason": "stop",
                "matched_stop": 2,
            }
        ],
        "usage": {"prompt_tokens": 12, "completion_tokens": 106, "total_tokens": 118},
        "sglext": {
            "spec_tokens_details": {
                "spec_accept_rate": 63 / 215,
                "spec_accept_length": 106 / 43,
                "spec_num_correct_drafts": 63,
                "spec_num_proposed_drafts": 215,
                "spec_verify_ct": 43,
                "spec_correct_drafts_histogram": [11, 14, 11, 4, 0, 3],
            }
        },
    }
    segment = only(report(body))
    f = segment.figures
    assert segment.values["engine"] == "sglang"
    assert f.k == 5
    assert f.histogram is not None
    assert sum(f.histogram) == f.steps == 43
    assert sum(j * n for j, n in enumerate(f.histogram)) == f.accepted == 63
    assert f.drafted == 5 * f.steps == 215
    assert f.completion_tokens == f.steps + f.accepted == 106
    assert f.draft_acceptance_rate.value == pytest.approx(63 / 215)
    assert identities(segment)[TOKENS].holds is True
    assert survival(segment) == pytest.approx([0.744, 0.419, 0.163, 0.070, 0.070], abs=5e-4)
    assert conditional(segment)[3:] == pytest.approx([0.429, 1.0], abs=5e-4)
    assert "nominal_drafted" in flags(segment)


def test_absent_zero_and_unknown_counters_are_three_different_answers(report: Reporter) -> None:
    """Case 4: counters that were lost on the way, or silently read 0."""
    zero = {
        "acceptance_histogram": [0, 0, 0, 0],
        "num_spec_steps": 0,
        "total_accepted_draft_tokens": 0,
        "total_draft_tokens": 0,
        "num_spec_tokens": 3,
    }
    absent = report(tensorrt_llm(avg_decoded_tokens_per_iter=None)).records
    unknown = report(tensorrt_llm(**zero)).records
    assert (absent.used, unknown.used) == (0, 0)
    assert "null" in next(iter(absent.no_metrics))
    assert "read 0" in next(iter(unknown.no_metrics))
    nothing_accepted = only(report(vllm([43, 0, 0, 0], 44))).figures
    assert nothing_accepted.draft_acceptance_rate.value == 0


def test_two_engines_with_the_same_field_names_are_told_apart(report: Reporter) -> None:
    """Case 5, fixture 3."""
    counted = tensorrt_llm(
        avg_decoded_tokens_per_iter=2.5,
        acceptance_rate=0.5,
        acceptance_histogram=[8, 0, 6, 6],
        num_spec_steps=20,
        total_accepted_draft_tokens=30,
        total_draft_tokens=60,
        num_spec_tokens=3,
    )
    found = report(counted, vllm([8, 0, 6, 6], 51))
    by_engine = {segment.values["engine"]: segment for segment in found.segments}
    assert by_engine.keys() == {"tensorrt-llm", "vllm"}
    for segment in by_engine.values():
        f = segment.figures
        assert (f.k, f.steps, f.accepted, f.drafted) == (3, 20, 30, 60)
        assert f.mean_acceptance_length.value == 2.5
        assert survival(segment) == pytest.approx([0.6, 0.6, 0.3])
        assert conditional(segment) == pytest.approx([0.6, 1.0, 0.5])
    assert found.pooled is None
    assert "engines differ" in (found.pooled_refused or "")


def test_all_or_nothing_has_a_flat_survival(report: Reporter) -> None:
    """Case 5, fixture 3: a histogram in SGLang's older native form."""
    body = {
        "text": "...",
        "meta_info": {
            "prompt_tokens": 12,
            "completion_tokens": 45,
            "spec_verify_ct": 15,
            "spec_accept_histogram": [5, 0, 0, 10],
        },
    }
    segment = only(report(body))
    assert segment.figures.mean_acceptance_length.value == 3.0
    assert survival(segment) == pytest.approx([0.667] * 3, abs=5e-4)


def test_steps_that_no_engine_tells_are_estimated_and_labelled(report: Reporter) -> None:
    """Case 6, fixture 4."""
    segment = only(report(llama_server(200, 11082.606, draft_n=347, draft_n_accepted=65)))
    f = segment.figures
    assert (f.steps, f.steps_estimated) == (135, True)
    assert f.draft_acceptance_rate.value == pytest.approx(0.187, abs=5e-4)
    assert f.mean_acceptance_length.value == pytest.approx(1.48, abs=5e-3)
    assert emitted_tokens_per_s(200, 11.082606) == pytest.approx(18.05, abs=5e-3)
    assert "steps" in flags(segment)["estimated_steps"].detail
    assert identities(segment)[TOKENS].holds is None


def test_drafts_that_were_never_tested_do_not_count_as_failed(report: Reporter) -> None:
    """Case 8: acceptance looked worse because skipped short drafts were counted as proposed."""
    # Four steps drafted one token and had it accepted; six drafted three.
    body = vllm(
        [3, 4, 0, 3],
        24,
        num_draft_tokens=22,
        per_step_accepted=[1, 1, 1, 1, 0, 0, 0, 3, 3, 3],
        per_step_drafted=[1, 1, 1, 1, 3, 3, 3, 3, 3, 3],
    )
    second = only(report(body)).figures.positions[1]
    assert second.at_risk == 3
    assert second.conditional.value == 1.0
    assert second.survival.value == pytest.approx(0.7)
    assert second.naive.value == pytest.approx(0.3)


def test_everything_accepted_with_little_to_show_for_it_is_suspicious(report: Reporter) -> None:
    """Case 9: replayed drafts counted twice, or always accepted."""
    flag = flags(only(report(vllm([0, 0, 0, 150], 301))))["suspiciously_perfect"]
    assert "450 of 450 drafted tokens accepted" in flag.detail
    assert "only 301 of the 600 tokens" in flag.detail
    healthy = only(report(vllm([20, 30, 40, 60], 292)))
    assert "suspiciously_perfect" not in flags(healthy)


def test_one_accepted_of_633_is_a_broken_drafter(report: Reporter) -> None:
    """Case 12."""
    segment = only(report(llama_server(400, 9000.0, draft_n=633, draft_n_accepted=1)))
    flag = flags(segment)["broken_drafter"]
    assert flag.detail == "broken drafter, not low acceptance: 1 accepted of 633 drafted"
    assert "tokenizer" in flag.check


def test_nothing_or_everything_accepted_with_text_that_repeats_is_a_corrupted_run(
    report: Reporter,
) -> None:
    """Case 13: NaN logits, the output is one character over and over."""
    corrupted = only(report(vllm([50, 0, 0, 0, 50], 301, text="!" * 600)))
    assert "corrupted run" in flags(corrupted)["all_or_nothing"].detail
    assert "NaN logits" in flags(corrupted)["all_or_nothing"].check
    sound = "The quick brown fox jumps over the lazy dog, and then a different sentence follows."
    mixture = only(report(vllm([50, 0, 0, 0, 50], 301, text=sound)))
    assert "two kinds of prompt" in flags(mixture)["all_or_nothing"].detail


def test_the_counters_of_all_ranks_are_added_and_their_moments_of_creation_are_not(
    report: Reporter,
) -> None:
    """Case 16, fixture 7: eight data-parallel ranks."""
    drafts = [22, 15, 29, 20, 25, 24, 27, 26]
    page = scrape(
        {"drafts": drafts, "draft_tokens": [3 * n for n in drafts], "accepted_tokens": drafts}
    )
    f = only(report(page)).figures
    assert (f.steps, f.accepted, f.drafted) == (188, 188, 564)


def test_the_mean_length_is_never_worked_out_from_one_rate(report: Reporter) -> None:
    """Case 18: a paper's length does not follow from its rate by a constant chance per token."""
    segment = only(report(vllm([11, 14, 11, 4, 0, 3], 107)))
    f = segment.figures
    rate = f.draft_acceptance_rate.value
    assert rate is not None
    constant = sum(rate**position for position in range(6))
    assert f.mean_acceptance_length.value == pytest.approx(1 + 63 / 43)
    assert f.mean_acceptance_length.value != pytest.approx(constant, abs=0.5)
    assert survival(segment) != pytest.approx([rate**r for r in range(1, 6)], abs=0.05)


def test_the_rate_falls_with_k_while_conditional_survival_stays(report: Reporter) -> None:
    """Case 19: the rate changed with K although the drafter did not."""
    # Each position is accepted in half of the steps that reach it.
    short, long = report(vllm([2, 1, 1], 8), vllm([16, 8, 4, 2, 1, 1], 64)).segments
    assert conditional(short) == [0.5] * 2
    assert conditional(long) == [0.5] * 5
    assert short.figures.draft_acceptance_rate.value == 3 / 8
    assert long.figures.draft_acceptance_rate.value == 31 / 160


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


ZEROS = ", ".join(["0.000"] * 10)
FIFTEEN = log_line("2.37", 89, 975, f"0.600, 0.385, 0.215, 0.108, 0.062, {ZEROS}")
SEVEN = log_line("2.91", 44, 161, "0.739, 0.478, 0.261, 0.174, 0.130, 0.087, 0.043")


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


def test_the_tokens_of_all_arms_come_from_the_same_counter(report: Reporter) -> None:
    """49: tokens of one arm were taken from its text, those of the other were counted."""
    short = report(vllm([5, 5], 16, text="x"), vllm([5, 5, 5], 31, text="x"))
    long = report(vllm([5, 5], 16, text="word " * 90), vllm([5, 5, 5], 31, text="y" * 900))
    for one, other in zip(short.segments, long.segments, strict=True):
        assert one.figures.completion_tokens == other.figures.completion_tokens
        assert one.figures.mean_acceptance_length == other.figures.mean_acceptance_length
        assert one.reconciliation == other.reconciliation


def expectation(found: AcceptanceReport, wanted: str) -> Expectation:
    held = only(held_against(found, read_expected(wanted))).expected
    assert held is not None
    return held


def causes(held: Expectation) -> dict[str, Cause]:
    return {cause.name: cause for cause in held.causes}


BELOW_CARD = [20, 14, 10, 8, 6, 4, 2, 10]
"""M = 3.19 at K = 7."""


def sglang(histogram: Sequence[int]) -> Any:
    """An answer of SGLang with full drafts."""
    steps, accepted = sum(histogram), sum(j * n for j, n in enumerate(histogram))
    drafted = (len(histogram) - 1) * steps
    return {
        "id": f"sg-{steps}-{accepted}",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "..."},
                "finish_reason": "stop",
                "matched_stop": 2,
            }
        ],
        "usage": {
            "prompt_tokens": 12,
            "completion_tokens": steps + accepted,
            "total_tokens": 12 + steps + accepted,
        },
        "sglext": {
            "spec_tokens_details": {
                "spec_accept_rate": accepted / drafted,
                "spec_accept_length": (steps + accepted) / steps,
                "spec_num_correct_drafts": accepted,
                "spec_num_proposed_drafts": drafted,
                "spec_verify_ct": steps,
                "spec_correct_drafts_histogram": list(histogram),
            }
        },
    }


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


def test_a_drafter_of_which_one_token_was_accepted_is_broken_beside_any_card(
    report: Reporter,
) -> None:
    """12: 1 accepted of 633 drafted."""
    held = expectation(report(llama_server(634, 20_000.0, draft_n=633, draft_n_accepted=1)), "2.4")
    assert "broken drafter" in held.text


def test_a_length_that_leaves_out_the_targets_own_token_is_recognised(report: Reporter) -> None:
    """18: 3.25 beside a rate of 0.65 are the accepted tokens of a step at K = 5, not a formula."""
    found = report(*(vllm([20 + n, 5, 5, 10, 20, 40 + n], 300) for n in range(-3, 4)))
    f = only(found).figures
    assert f.draft_acceptance_rate.value == pytest.approx(0.65, abs=1e-3)
    cause = causes(expectation(found, "3.25"))["counting"]
    assert cause.status == "differs"
    assert cause.detail.startswith("A/S")
    assert "M here is 1 + A/S = 4.25" in cause.detail


@pytest.mark.parametrize(
    ("played", "best", "covers"),
    [
        (Played(), "request_detailed", "request"),
        (Played(version="0.31.0", body=PER_CHOICE, stream=None), "request_other", "request"),
        (Played(version="0.23.0", body=SWITCHED_OFF, stream=None), "counters_between", "interval"),
    ],
    ids=["on the answer", "on the choice", "in the counters"],
)
def test_the_figures_of_any_vllm_are_found_in_a_stated_order(
    played: Played, best: str, covers: str
) -> None:
    """17: three versions have them in three places; 1: which there are, cumulative or interval."""
    with served(played) as root, httpx2.Client() as http:
        server = Exchange(root, http, api_key=None, timeout_s=20, clock=time.monotonic)
        found = probe_to_json(
            build_probe_report(look(server, model=None, max_tokens=48, requests=True))
        )
    rungs = {rung["name"]: rung for rung in found["rungs"]}
    assert found["best"] == best
    assert rungs[best]["covers"] == covers
    assert rungs["counters_since_start"]["covers"] == "cumulative"
    above = found["rungs"][: rungs[best]["number"] - 1]
    assert "tells" not in [rung["outcome"] for rung in above]


@pytest.mark.parametrize(
    ("histogram", "side", "check"),
    [([97, 2, 1, 0], "low", "garbled text"), ([1, 1, 1, 97], "high", "do they loop")],
)
def test_acceptance_is_watched_for_garbled_text_and_for_loops(
    histogram: Sequence[int], side: Side, check: str
) -> None:
    """14: the acceptance distribution as a production alarm, on either side and per segment."""
    watcher = Watcher(
        lambda _: FixedBand(Limits(1.3, 3.0)), by=("kind",), learn=20, min_steps=50, confirm=2
    )
    reports = []
    for number in range(2):
        collector = Collector(["kind"])
        for kind, counts in (("chat", [40, 25, 20, 15]), ("code", histogram)):
            collector.add(
                Place("-"),
                AcceptanceRecord(engine="vllm", k=3, histogram=counts, tags={"kind": kind}),
            )
        reports.append(watcher.see(Window(10.0 * number, 10.0 * number + 10, collector.finish())))
    [event] = reports[1].events
    assert (event.kind, event.side, event.row.name) == ("raised", side, "kind code, K = 3")
    assert check in CHECKS[event.side]
    assert reports[1].rows[0].state == "inside"
