"""What each kind of server comes to, rung by rung."""

import re
import time
from typing import Any

import httpx2
import pytest
from tests.records.probe.playing import (
    BEFORE,
    CHAT,
    COMPLETIONS,
    DETAILED,
    DETAILED_COMPLETION,
    NO_DRAFTER_PAGE,
    NO_STATS_PAGE,
    NOTHING_DRAFTED,
    SGLANG_PAGE,
    SWITCHED_OFF,
    Played,
    at_summary,
    other,
    served,
)

from outrider.errors import UnreadableSource
from outrider.records.probe.exchange import Exchange
from outrider.records.probe.looking import look
from outrider.records.probe.outcome import DoesNot, NotTried, Outcome, Tells, Unknown
from outrider.records.probe.rungs.registry import RUNGS
from outrider.records.probe.seen import Seen


def seen(played: Played, *, timeout_s: float = 20.0, **options: Any) -> Seen:
    asked = {"model": None, "max_tokens": 48, "requests": True, **options}
    key = asked.pop("api_key", None)
    with served(played) as root, httpx2.Client() as http:
        exchange = Exchange(root, http, api_key=key, timeout_s=timeout_s, clock=time.monotonic)
        return look(exchange, **asked)


def judged(played: Played, **options: Any) -> dict[str, Outcome]:
    found = seen(played, **options)
    return {rung.name: rung.judge(found) for rung in RUNGS}


def kinds(outcomes: dict[str, Outcome]) -> list[type]:
    return [type(outcome) for outcome in outcomes.values()]


def reason(outcome: Outcome) -> str:
    assert not isinstance(outcome, Tells)
    return outcome.reason


def test_the_order_is_stated_and_names_stay() -> None:
    assert [rung.name for rung in RUNGS] == [
        "request_detailed",
        "request_summary",
        "request_other",
        "counters_between",
        "counters_since_start",
        "server_log",
        "time_per_token",
    ]


def test_vllm_with_detailed_figures_tells_on_four_rungs() -> None:
    outcomes = judged(Played())
    assert kinds(outcomes) == [Tells, Tells, DoesNot, Tells, Tells, NotTried, NotTried]
    detailed, summary = outcomes["request_detailed"], outcomes["request_summary"]
    between, start = outcomes["counters_between"], outcomes["counters_since_start"]
    assert isinstance(detailed, Tells)
    assert isinstance(summary, Tells)
    assert isinstance(between, Tells)
    assert isinstance(start, Tells)
    assert detailed.records[0].steps == 47
    assert len(detailed.records[0].per_step_accepted or ()) == 47
    assert (detailed.k, detailed.streamed) == (3, True)
    assert summary.records[0].histogram == detailed.records[0].histogram
    assert summary.records[0].per_step_accepted is None
    assert (between.records[0].steps, start.records[0].steps) == (3183, 3325)


def test_summary_figures_are_the_second_rung() -> None:
    outcomes = judged(Played(body=at_summary(DETAILED), stream=None))
    assert kinds(outcomes)[:2] == [DoesNot, Tells]
    assert "`summary`" in reason(outcomes["request_detailed"])


def test_with_the_flag_off_the_counters_tell_that_there_is_a_drafter() -> None:
    outcomes = judged(Played(body=SWITCHED_OFF, stream=None))
    assert kinds(outcomes) == [DoesNot, DoesNot, DoesNot, Tells, Tells, NotTried, NotTried]
    told = "speculation is on, --per-request-spec-decode-metrics is off"
    assert reason(outcomes["request_detailed"]) == told


def test_without_a_drafter_speculation_is_said_to_be_off() -> None:
    outcomes = judged(Played(body=SWITCHED_OFF, stream=None, metrics=(NO_DRAFTER_PAGE,)))
    assert Tells not in kinds(outcomes)
    for name in ("request_detailed", "counters_between", "counters_since_start", "server_log"):
        assert reason(outcomes[name]).startswith("speculation is off")


def test_without_log_stats_it_stays_unknown_whether_there_is_a_drafter() -> None:
    played = Played(body=SWITCHED_OFF, stream=None, metrics=(NO_STATS_PAGE,))
    found = seen(played)
    outcomes = {rung.name: rung.judge(found) for rung in RUNGS}
    assert (found.speculates, found.log_stats) == (None, False)
    assert "--disable-log-stats" in reason(outcomes["counters_between"])
    assert "or --per-request-spec-decode-metrics is off" in reason(outcomes["request_summary"])


def test_an_older_vllm_is_told_what_it_cannot() -> None:
    outcomes = judged(Played(version="0.23.1.dev0+g0fc695fc6", body=SWITCHED_OFF, stream=None))
    assert reason(outcomes["request_summary"]) == (
        "vLLM 0.23.1.dev0+g0fc695fc6 cannot: known from 0.32 on"
    )
    assert isinstance(outcomes["counters_between"], Tells)


def test_an_older_place_is_named_on_the_rungs_above() -> None:
    outcomes = judged(Played(version="0.31.0", body=other("vllm-choice", "sparse"), stream=None))
    assert "an older place" in reason(outcomes["request_summary"])
    assert isinstance(outcomes["request_other"], Tells)


def test_counters_at_zero_are_there_and_absent_ones_are_not() -> None:
    at_zero = re.sub(r"(?m)^(vllm:spec_decode_\S+_total\S*) \S+$", r"\1 0.0", BEFORE)
    zero = judged(Played(metrics=(at_zero,)))["counters_since_start"]
    absent = judged(Played(metrics=(NO_DRAFTER_PAGE,)))["counters_since_start"]
    no_page = judged(Played(metrics=()))["counters_since_start"]
    unread = judged(Played(key="sk-k", guards_metrics=True))["counters_since_start"]
    assert isinstance(zero, Tells)
    assert (zero.records, zero.k) == ((), 3)
    assert zero.zero == "nothing was drafted since the server started"
    assert isinstance(absent, DoesNot)
    assert isinstance(no_page, DoesNot)
    assert "status 404" in no_page.reason
    assert isinstance(unread, Unknown)
    assert "status 401" in unread.reason


def test_an_answer_without_a_draft_is_zero_and_its_lengths_are_unknown() -> None:
    outcomes = judged(Played(body=NOTHING_DRAFTED, stream=None))
    summary = outcomes["request_summary"]
    assert isinstance(summary, Tells)
    assert summary.zero == "nothing was drafted in this answer"
    assert summary.records[0].steps == 0
    assert isinstance(outcomes["request_detailed"], Unknown)


@pytest.mark.parametrize(
    ("adapter", "case", "engine", "bases"),
    [
        ("vllm-choice", "sparse", "vllm", ("counted", "counted", "counted")),
        ("sglang", "extension", "sglang", ("counted", "counted", "nominal")),
        ("tensorrt-llm", "counters", "tensorrt-llm", ("counted", "counted", "counted")),
        ("llama-server", "openai", "llama.cpp", ("estimated", "counted", "counted")),
        ("mlx", "rounds", "mlx", ("counted", "counted", "counted")),
    ],
)
def test_other_places_are_the_third_rung(
    adapter: str, case: str, engine: str, bases: tuple[str, str, str]
) -> None:
    played = Played(
        version=None, owner="somebody", metrics=(), body=other(adapter, case), stream=None
    )
    found = seen(played)
    outcomes = {rung.name: rung.judge(found) for rung in RUNGS}
    told = outcomes["request_other"]
    assert isinstance(told, Tells)
    record = told.records[0]
    assert found.engine == record.engine == engine
    assert (record.steps_basis, record.accepted_basis, record.drafted_basis) == bases
    assert isinstance(outcomes["request_detailed"], DoesNot)


@pytest.mark.parametrize(
    ("adapter", "case", "kind"),
    [
        ("sglang", "all-zero", Unknown),
        ("sglang", "not-asked-for", DoesNot),
        ("tensorrt-llm", "all-zero", Unknown),
        ("tensorrt-llm", "null", DoesNot),
        ("llama-server", "no-draft", Unknown),
        ("mlx", "null", Unknown),
        ("vllm-choice", "null", DoesNot),
    ],
)
def test_a_zero_that_may_stand_for_unknown_is_unknown(adapter: str, case: str, kind: type) -> None:
    outcome = judged(Played(metrics=(), body=other(adapter, case), stream=None))["request_other"]
    assert type(outcome) is kind


def test_sglang_says_that_its_page_has_running_values_only() -> None:
    played = Played(
        owner="sglang", metrics=(SGLANG_PAGE,), body=other("sglang", "extension"), stream=None
    )
    assert "no counts of accepted tokens" in reason(judged(played)["counters_between"])


def test_sglang_asked_in_vain_is_not_told_to_ask() -> None:
    body = other("sglang", "not-asked-for")
    told = reason(judged(Played(body=body, stream=None))["request_other"])
    assert "gives none" in told
    refusing = Played(body=body, stream=None, refused=frozenset({"return_spec_tokens_details"}))
    assert "refuses" in reason(judged(refusing)["request_other"])


def test_two_requests_are_sent_with_usage_on_the_stream() -> None:
    played = Played()
    assert seen(played, max_tokens=7).requests_sent == 2
    (path, plain), (also, streamed) = played.asked
    assert path == also == CHAT
    assert (plain["model"], plain["max_tokens"], plain["temperature"]) == ("a-model", 7, 0)
    assert plain["return_spec_tokens_details"] is True
    assert "stream" not in plain
    assert streamed == {**plain, "stream": True, "stream_options": {"include_usage": True}}


def test_a_server_that_refuses_unknown_fields_is_asked_without_them() -> None:
    played = Played(refused=frozenset({"return_spec_tokens_details"}))
    outcomes = judged(played)
    assert isinstance(outcomes["request_detailed"], Tells)
    assert ["return_spec_tokens_details" in request for _, request in played.asked] == [
        True,
        False,
        False,
    ]


def test_a_server_without_chat_is_asked_for_a_completion() -> None:
    played = Played(paths=(COMPLETIONS,), body=DETAILED_COMPLETION, stream=None)
    assert isinstance(judged(played)["request_detailed"], Tells)
    assert [path for path, _ in played.asked] == [CHAT, COMPLETIONS, COMPLETIONS]
    assert isinstance(played.asked[1][1]["prompt"], str)


def test_a_stream_that_is_refused_leaves_the_plain_answer() -> None:
    told = judged(Played(refused=frozenset({"stream_options"})))["request_detailed"]
    assert isinstance(told, Tells)
    assert told.streamed is None
    assert "stream_options" in (told.stream_reason or "")


def test_a_server_with_nothing_gives_reasons_and_no_figures() -> None:
    outcomes = judged(Played(version=None, owner=None, metrics=(), paths=()))
    assert kinds(outcomes) == [Unknown] * 3 + [DoesNot] * 2 + [NotTried] * 2
    assert "status 404: Not Found" in reason(outcomes["request_other"])


def test_a_web_page_is_no_server_that_tells() -> None:
    outcomes = judged(Played(web_page=True))
    assert Tells not in kinds(outcomes)
    assert "Prometheus" in reason(outcomes["counters_between"])
    assert isinstance(outcomes["request_detailed"], Unknown)


def test_an_answer_that_does_not_come_leaves_the_counters() -> None:
    played = Played(hangs_on=(CHAT,))
    outcomes = judged(played, timeout_s=0.2)
    assert reason(outcomes["request_detailed"]).endswith("no answer within 0.2 s")
    assert isinstance(outcomes["counters_since_start"], Tells)


def test_a_server_that_answers_nothing_is_unreachable() -> None:
    with pytest.raises(UnreadableSource, match=r"cannot be reached \(no answer within 0.2 s\)"):
        seen(Played(hangs_on=("/version",)), timeout_s=0.2)


def test_a_refused_key_is_told_and_not_shown() -> None:
    outcomes = judged(Played(key="sk-right-key"), api_key="sk-wrong-key")
    told = reason(outcomes["request_detailed"])
    assert "status 401: Incorrect API key provided: ***" in told
    assert isinstance(outcomes["counters_between"], Tells)


def test_the_key_goes_to_the_counters_only_where_they_ask_for_it() -> None:
    for guarded in (False, True):
        found = seen(Played(key="sk-k", guards_metrics=guarded), api_key="sk-k")
        assert not hasattr(found.metrics, "reason")
        assert getattr(found.metrics, "needs_key", None) is guarded
        assert found.models == ("a-model",)


def test_without_requests_only_pages_are_read() -> None:
    played = Played()
    outcomes = judged(played, requests=False)
    assert kinds(outcomes)[:5] == [NotTried, NotTried, NotTried, Tells, Tells]
    assert played.asked == []
    assert played.scrapes == 1
