"""Cases 1 to 20: which numbers of acceptance there are, and whether they can be trusted."""

import time
from collections.abc import Sequence

import httpx2
import pytest
from tests.records.probe.playing import PER_CHOICE, SWITCHED_OFF, Played, served
from tests.user_cases.bodies import llama_server, scrape, tensorrt_llm, vllm
from tests.user_cases.reading import (
    Reporter,
    causes,
    collect,
    conditional,
    expectation,
    flags,
    identities,
    only,
    survival,
)

from outrider.acceptance.alarm_band import FixedBand, Limits, Side
from outrider.acceptance.reconciliation import TOKENS
from outrider.acceptance.tokens import emitted_tokens_per_s
from outrider.records.collecting import Collector
from outrider.records.probe.exchange import Exchange
from outrider.records.probe.looking import look
from outrider.records.reading import AcceptanceRecord, Place
from outrider.records.windows import Window
from outrider.report.acceptance.building import build_acceptance_report
from outrider.report.probe.as_json import probe_to_json
from outrider.report.probe.document import build_probe_report
from outrider.report.watch.causes import CHECKS
from outrider.report.watch.watcher import Watcher

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


def test_a_drafter_of_which_one_token_was_accepted_is_broken_beside_any_card(
    report: Reporter,
) -> None:
    """12: 1 accepted of 633 drafted."""
    held = expectation(report(llama_server(634, 20_000.0, draft_n=633, draft_n_accepted=1)), "2.4")
    assert "broken drafter" in held.text


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


def test_a_length_that_leaves_out_the_targets_own_token_is_recognised(report: Reporter) -> None:
    """18: 3.25 beside a rate of 0.65 are the accepted tokens of a step at K = 5, not a formula."""
    found = report(*(vllm([20 + n, 5, 5, 10, 20, 40 + n], 300) for n in range(-3, 4)))
    f = only(found).figures
    assert f.draft_acceptance_rate.value == pytest.approx(0.65, abs=1e-3)
    cause = causes(expectation(found, "3.25"))["counting"]
    assert cause.status == "differs"
    assert cause.detail.startswith("A/S")
    assert "M here is 1 + A/S = 4.25" in cause.detail


def test_the_rate_falls_with_k_while_conditional_survival_stays(report: Reporter) -> None:
    """Case 19: the rate changed with K although the drafter did not."""
    # Each position is accepted in half of the steps that reach it.
    short, long = report(vllm([2, 1, 1], 8), vllm([16, 8, 4, 2, 1, 1], 64)).segments
    assert conditional(short) == [0.5] * 2
    assert conditional(long) == [0.5] * 5
    assert short.figures.draft_acceptance_rate.value == 3 / 8
    assert long.figures.draft_acceptance_rate.value == 31 / 160
