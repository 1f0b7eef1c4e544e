from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from outrider.advice.comparison import compare
from outrider.advice.decision import Verdict
from outrider.advice.finding import Finding, find
from outrider.records.arm import BASELINE, Arm
from outrider.records.request import RequestRecord

MakeRequest = Callable[..., RequestRecord]
FindAll = Callable[..., dict[str, Finding]]

ARMS = (BASELINE, Arm("k1", "ngram", 1), Arm("k4", "ngram", 4))
PROMPTS = {f"{kind}{number}": kind for kind in ("chat", "copy") for number in range(1, 6)}


@pytest.fixture
def find_all(make_request: MakeRequest) -> FindAll:
    """Findings where step i of an arm on a prompt takes the kind's time, a little more each."""

    def run(
        step_s: Mapping[str, Mapping[str, float]],
        *,
        prompts: Sequence[str] = tuple(PROMPTS),
        smoke: bool = False,
        wrong_arms: Sequence[str] = (),
        accepted: int = 1,
    ) -> dict[str, Finding]:
        requests = []
        for place, prompt in enumerate(prompts):
            time_s = {
                arm: base * (1 + place / 1000) for arm, base in step_s[PROMPTS[prompt]].items()
            }
            tokens = 5 * (1 + accepted)
            requests.append(make_request("none", prompt, [(0, 0, 1.0)] * tokens))
            requests += [
                make_request(arm, prompt, [(int(arm[1:]), accepted, time_s[arm])] * 5)
                for arm in time_s
            ]
        kinds = {prompt: PROMPTS[prompt] for prompt in prompts}
        comparison = compare(
            requests, ARMS, kinds, wrong_arms=wrong_arms, rng=np.random.default_rng(0)
        )
        return {finding.segment: finding for finding in find(comparison, smoke=smoke)}

    return run


def test_a_gain_names_the_setting_its_speed_up_interval_and_break_even(find_all: FindAll) -> None:
    same = {"k1": 1.25, "k4": 1.6}

    overall = find_all({"chat": same, "copy": same})["overall"]

    assert (overall.verdict, overall.arm) == (Verdict.USE, "k1")
    assert overall.text == (
        "Use n-gram with K = 1: it decodes 1.59 times as fast as no speculation (95 % interval"
        " 1.59–1.60, 10 prompts). 100.0 % of its decode steps had a draft; a step yields 2.00"
        " tokens (M̂) and takes 1.26 times as long as a plain one (ρ), where 2.00 would be"
        " break-even."
    )


def test_a_tie_names_the_faster_arm_that_was_passed_over(
    find_all: FindAll, make_request: MakeRequest
) -> None:
    del find_all
    requests = []
    for place in range(6):
        prompt = f"p{place}"
        swing = 0.01 if place % 2 else -0.02
        requests += [
            make_request("none", prompt, [(0, 0, 1.0)] * 4),
            make_request("k1", prompt, [(1, 1, 1.6 - swing)] * 2),
            make_request("k4", prompt, [(4, 1, 1.6 + swing)] * 2),
        ]
    kinds = {f"p{place}": "all" for place in range(6)}

    (finding,) = find(compare(requests, ARMS, kinds, rng=np.random.default_rng(0)), smoke=False)

    assert (finding.verdict, finding.arm) == (Verdict.USE, "k1")
    assert "; n-gram with K = 4 measures 1.25, too close to tell apart" in finding.text


def test_a_loss_is_told_to_be_left_off(find_all: FindAll) -> None:
    same = {"k1": 2.5, "k4": 4.0}

    overall = find_all({"chat": same, "copy": same})["overall"]

    assert (overall.verdict, overall.arm) == (Verdict.OFF, None)
    assert overall.text.startswith(
        "Leave speculation off: no lossless setting gains 2 %. The fastest, n-gram with K = 1,"
        " decodes 0.80 times as fast as no speculation (95 % interval 0.79–0.80, 10 prompts)."
    )
    assert "By kind" not in overall.text


def test_overall_says_which_kind_gains_and_which_does_not(find_all: FindAll) -> None:
    findings = find_all({"chat": {"k1": 2.2, "k4": 3.0}, "copy": {"k1": 1.1, "k4": 1.0}})

    assert [(f.verdict, f.arm) for f in findings.values()][1:] == [
        (Verdict.OFF, None),
        (Verdict.USE, "k4"),
    ]
    assert findings["overall"].text.endswith(
        "By kind of prompt, it pays on copy (n-gram with K = 4, 1.99 times as fast); it does not"
        " pay on chat: turn it on only for copy, if that can be served apart."
    )


def test_kinds_that_gain_with_different_settings_are_told_apart(find_all: FindAll) -> None:
    findings = find_all({"chat": {"k1": 1.1, "k4": 1.5}, "copy": {"k1": 1.1, "k4": 1.0}})

    assert findings["overall"].text.endswith(
        "By kind of prompt, it pays on chat (n-gram with K = 1, 1.81 times as fast) and copy"
        " (n-gram with K = 4, 1.99 times as fast)."
    )


def test_a_kind_with_a_single_prompt_is_inconclusive_and_says_why(find_all: FindAll) -> None:
    same = {"k1": 1.25, "k4": 1.6}

    findings = find_all({"chat": same, "copy": same}, prompts=tuple(PROMPTS)[:6])

    assert (findings["chat"].verdict, findings["chat"].arm) == (Verdict.USE, "k1")
    assert (findings["copy"].verdict, findings["copy"].arm) == (Verdict.INCONCLUSIVE, None)
    assert "(a single prompt gives no interval)" in findings["copy"].text
    assert findings["overall"].text.endswith(
        " By kind of prompt, it pays on chat (n-gram with K = 1, 1.60 times as fast); copy has too"
        " few measured prompts for a verdict."
    )


def test_kinds_too_small_to_decide_leave_the_overall_gain_alone(find_all: FindAll) -> None:
    same = {"k1": 1.25, "k4": 1.6}
    prompts = [prompt for prompt in PROMPTS if prompt[-1] in "123"]

    findings = find_all({"chat": same, "copy": same}, prompts=prompts)

    assert [(f.verdict, f.arm) for f in findings.values()] == [
        (Verdict.USE, "k1"),
        (Verdict.INCONCLUSIVE, None),
        (Verdict.INCONCLUSIVE, None),
    ]
    assert findings["overall"].text.endswith(
        " where 2.00 would be break-even. By kind of prompt, chat and copy have too few measured"
        " prompts for a verdict."
    )


def test_four_prompts_that_all_gain_are_too_few(find_all: FindAll) -> None:
    (overall,) = find_all({"chat": {"k1": 1.25, "k4": 1.6}}, prompts=tuple(PROMPTS)[:4]).values()

    assert (overall.verdict, overall.arm) == (Verdict.INCONCLUSIVE, None)
    assert overall.text == (
        "Inconclusive: n-gram with K = 1 decodes 1.60 times as fast as no speculation (95 %"
        " interval 1.60–1.60, 4 prompts). Fewer than 5 prompts decide nothing: give it more. 100.0"
        " % of its decode steps had a draft; a step yields 2.00 tokens (M̂) and takes 1.25 times as"
        " long as a plain one (ρ), where 2.00 would be break-even."
    )


def test_five_prompts_that_all_gain_are_enough(find_all: FindAll) -> None:
    (overall,) = find_all({"chat": {"k1": 1.25, "k4": 1.6}}, prompts=tuple(PROMPTS)[:5]).values()

    assert (overall.verdict, overall.arm) == (Verdict.USE, "k1")
    assert "Fewer than" not in overall.text


def test_four_prompts_that_all_lose_are_too_few(find_all: FindAll) -> None:
    (overall,) = find_all({"chat": {"k1": 2.5, "k4": 4.0}}, prompts=tuple(PROMPTS)[:4]).values()

    assert (overall.verdict, overall.arm) == (Verdict.INCONCLUSIVE, None)
    assert "Fewer than 5 prompts decide nothing: give it more." in overall.text


def test_prompts_that_a_stopped_run_did_not_get_to_do_not_count(make_request: MakeRequest) -> None:
    kinds = dict.fromkeys(map("p{}".format, range(24)), "all")

    def found(measured: int) -> Finding:
        requests = [
            make_request(arm, f"p{place}", steps)
            for place in range(measured)
            for arm, steps in (("none", [(0, 0, 1.0)] * 4), ("k1", [(1, 1, 1.25)] * 2))
        ]
        (finding,) = find(
            compare(requests, ARMS[:2], kinds, rng=np.random.default_rng(0)), smoke=False
        )
        return finding

    assert (found(4).verdict, found(4).arm) == (Verdict.INCONCLUSIVE, None)
    assert "4 prompts). Fewer than 5 prompts decide nothing: give it more." in found(4).text
    assert (found(5).verdict, found(5).arm) == (Verdict.USE, "k1")


def test_a_smoke_run_gives_no_verdict_however_large_the_gain(find_all: FindAll) -> None:
    same = {"k1": 0.5, "k4": 1.0}

    findings = find_all({"chat": same, "copy": same}, smoke=True)

    for finding in findings.values():
        assert (finding.verdict, finding.arm) == (Verdict.INCONCLUSIVE, None)
        assert finding.text.startswith("Smoke run: too short to decide. So far n-gram with K = 1")
        assert "Use " not in finding.text


def test_an_arm_that_changed_the_output_is_passed_over(find_all: FindAll) -> None:
    same = {"k1": 1.25, "k4": 1.0}

    some = find_all({"chat": same, "copy": same}, wrong_arms=("k4",))["overall"]
    every = find_all({"chat": same, "copy": same}, wrong_arms=("k1", "k4"))["overall"]
    few = find_all({"chat": same}, prompts=["chat1"], wrong_arms=("k1", "k4"))["overall"]

    assert (some.verdict, some.arm) == (Verdict.USE, "k1")
    assert (every.verdict, every.arm) == (Verdict.OFF, None)
    assert every.text == "Leave speculation off: every setting changed the output."
    assert (few.verdict, few.text) == (every.verdict, every.text)


def test_output_lengths_that_differ_are_told_before_the_ratio(make_request: MakeRequest) -> None:
    requests = []
    prompts = ("p1", "p2", "p3", "p4", "p5")
    for prompt in prompts:
        requests.append(make_request("none", prompt, [(0, 0, 1.0)] * 4))
        requests.append(make_request("k1", prompt, [(1, 1, 1.0)] * (1 if prompt == "p1" else 2)))
    kinds = dict.fromkeys(prompts, "all")

    (finding,) = find(compare(requests, ARMS[:2], kinds, rng=np.random.default_rng(0)), smoke=False)

    assert finding.text.startswith(
        "Output lengths differ in 1 of 5 pairs (23 tokens in all against 25). Use n-gram"
    )


def test_an_arm_that_found_no_draft_says_that_there_was_nothing_to_gain(
    make_request: MakeRequest,
) -> None:
    prompts = ("p1", "p2", "p3", "p4", "p5")
    requests = [
        make_request(arm, prompt, [(0, 0, 1.0)] * 3) for prompt in prompts for arm in ("none", "k1")
    ]
    kinds = dict.fromkeys(prompts, "all")

    (finding,) = find(compare(requests, ARMS[:2], kinds, rng=np.random.default_rng(0)), smoke=False)

    assert finding.verdict is Verdict.OFF
    assert finding.text.endswith("It found no draft at any step, so there was nothing to gain.")


def test_without_a_baseline_there_is_nothing_to_advise(make_request: MakeRequest) -> None:
    requests = [make_request("k1", "p1", [(1, 1, 1.0)])]

    (finding,) = find(
        compare(requests, ARMS[1:2], {"p1": "all"}, rng=np.random.default_rng(0)), smoke=False
    )

    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "lacks an arm without speculation" in finding.text


def test_arms_without_a_common_request_have_no_speed_up_to_tell(make_request: MakeRequest) -> None:
    requests = [make_request("k1", "p1", [(1, 1, 1.0)])]

    (finding,) = find(
        compare(requests, ARMS[:2], {"p1": "all"}, rng=np.random.default_rng(0)), smoke=False
    )

    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "(no request was finished by both arms)" in finding.text
