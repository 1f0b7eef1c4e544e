"""`outrider probe` as a user has it, against a server that plays an engine."""

import json
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest
from tests.cli.running import Result, Run
from tests.records.probe.playing import (
    DETAILED,
    NO_DRAFTER_PAGE,
    SWITCHED_OFF,
    Played,
    at_summary,
    other,
    served,
)

MODULE = "outrider.cli.main"
OFF = Played(body=SWITCHED_OFF, stream=None, metrics=(NO_DRAFTER_PAGE,))
DETAILED_FLAG = "--per-request-spec-decode-metrics detailed"


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def probed(run: Run, played: Played, *options: object, below: str = "") -> Result:
    with served(played) as root:
        result = run("probe", f"{root}{below}", *options)
    assert "Traceback" not in result.err
    return result


def as_json(run: Run, played: Played, *options: object) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(probed(run, played, "--format", "json", *options).out)
    assert content["schema"] == "outrider.probe/1"
    return content


@pytest.mark.parametrize("below", ["", "/", "/v1", "/v1/", "/metrics", "/v1/chat/completions"])
def test_the_address_may_be_that_of_any_page(run: Run, below: str) -> None:
    result = probed(run, Played(), below=below)
    assert result.exit_code == 0
    assert re.search(r"^  → 1 each answer, every step +tells", result.out, re.MULTILINE)


def test_it_says_first_that_two_requests_are_sent(run: Run) -> None:
    assert "two short requests" in probed(run, Played()).err
    quiet = probed(run, Played(), "--no-request")
    assert "sends no request" in quiet.err
    assert "no request sent" in quiet.out


@pytest.mark.parametrize(
    "played",
    [
        Played(),
        OFF,
        Played(body=other("llama-server", "openai"), stream=None, metrics=()),
        Played(web_page=True),
    ],
    ids=["detailed", "off", "llama.cpp", "web page"],
)
def test_every_line_fits_100_columns(run: Run, played: Played) -> None:
    lines = probed(run, played).out.splitlines()
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    ("played", "code", "best"),
    [
        (Played(), 0, "request_detailed"),
        (Played(body=SWITCHED_OFF, stream=None), 0, "counters_between"),
        (Played(body=other("sglang", "extension"), stream=None), 0, "request_other"),
        (OFF, 3, None),
        (Played(web_page=True), 3, None),
    ],
    ids=["detailed", "counters", "sglang", "off", "web page"],
)
def test_the_exit_code_says_whether_anything_tells(
    run: Run, played: Played, code: int, best: str | None
) -> None:
    result = probed(run, played, "--format", "json")
    assert result.exit_code == code
    assert json.loads(result.out)["best"] == best
    assert ("tells of speculation" in result.err) is (code == 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("localhost:8000",), "write for instance http://localhost:8000"),
        (("http://",), "an http(s) address"),
        (("http://127.0.0.1:1",), "cannot be reached"),
        (("http://127.0.0.1:1", "--timeout", "soon"), "--timeout soon"),
        (("http://127.0.0.1:1", "--max-tokens", "0"), "from 1 to"),
        (("http://127.0.0.1:1", "--format", "html"), "one of text, json"),
        (("http://127.0.0.1:1", "--api-key", "sk-\n"), "cannot be reached"),
        (("http://127.0.0.1:1", "--api-key", "sk-ü"), "plain ASCII"),
        (("http://me:secret@127.0.0.1:1",), "cannot be reached"),
    ],
)
def test_what_cannot_be_asked_is_one_line(run: Run, options: tuple[str, ...], words: str) -> None:
    result = run("probe", *options)
    assert result.exit_code == 2
    assert words in result.err.splitlines()[-1]
    assert "sk-" not in result.err
    assert "secret" not in result.err


def test_the_key_is_sent_and_never_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-mine")
    played = Played(key="sk-of-mine", guards_metrics=True)
    for form in ("text", "json"):
        result = probed(run, played, "--format", form)
        assert result.exit_code == 0
        assert "sk-of-mine" not in result.out + result.err
        assert "$OPENAI_API_KEY" in result.out


def test_a_server_that_wants_a_key_is_told_of(run: Run) -> None:
    result = probed(run, Played(key="sk-k", guards_metrics=True))
    assert result.exit_code == 3
    assert "--api-key" in result.out
    assert "give the key" in result.err
    assert "vllm serve" not in result.out


def test_what_is_no_inference_server_is_called_so(run: Run) -> None:
    result = probed(run, Played(web_page=True))
    assert "nothing there looks like an inference server" in result.err
    assert "Next" not in result.out


def test_the_named_model_is_asked(run: Run) -> None:
    played = Played()
    assert as_json(run, played, "--model", "another")["model"] == "another"
    assert {request["model"] for _, request in played.asked} == {"another"}


def test_unknown_is_null_in_json(run: Run) -> None:
    played = Played(version=None, owner=None, metrics=(), paths=())
    content = as_json(run, played)
    for name in ("engine", "version", "models", "model", "speculates", "log_stats", "best"):
        assert content[name] is None
    assert [rung["number"] for rung in content["rungs"]] == [1, 2, 3, 4, 5, 6, 7]
    assert [rung["outcome"] for rung in content["rungs"]] == (
        ["unknown"] * 3 + ["does_not"] * 2 + ["not_tried"] * 2
    )


def test_json_says_what_each_rung_covers_and_how_counts_came_about(run: Run) -> None:
    rungs = {rung["name"]: rung for rung in as_json(run, Played())["rungs"]}
    covers = [rungs[name]["covers"] for name in list(rungs)[:5] if name != "request_other"]
    assert covers == ["request", "request", "interval", "cumulative"]
    assert rungs["request_detailed"]["streamed"] is True
    played = Played(body=other("llama-server", "openai"), stream=None, metrics=())
    [told] = as_json(run, played)["rungs"][2]["seen"]
    assert (told["steps"], told["steps_basis"]) == (135, "estimated")
    assert (told["k"], told["histogram"], told["drafted"]) == (None, None, 347)


def test_the_printed_lines_can_be_run(run: Run) -> None:
    """The very words of `next`, with curl and the report, against the same server."""
    played = Played()
    with served(played) as root:
        content = json.loads(run("probe", root, "--format", "json").out)
        curl, own, interval = [step["command"] for step in content["next"]]
        line = curl.replace("outrider report", f"{shlex.quote(sys.executable)} -m {MODULE} report")
        done = subprocess.run(  # noqa: S602
            line, shell=True, capture_output=True, text=True, check=True
        )
        assert "K = 3: 2.68 tokens per verification step" in done.stdout
        played.scrapes = 0
        name, *arguments = shlex.split(interval)
        assert (name, arguments[-2:]) == ("outrider", ["--for", "60s"])
        report = run(*arguments[:-1], "10ms", "--format", "json")
    assert json.loads(report.out)["segments"][0]["steps"] == 3183
    assert own == "outrider report responses.jsonl"


@pytest.mark.parametrize(
    ("played", "words"),
    [
        (Played(body=at_summary(DETAILED), stream=None), DETAILED_FLAG),
        (Played(body=SWITCHED_OFF, stream=None), DETAILED_FLAG),
        (OFF, "--speculative-config"),
        (Played(version="0.28.0", body=SWITCHED_OFF, stream=None), "0.32 or later"),
        (Played(body=other("vllm-choice", "sparse"), stream=None, version=None), "upgrade vLLM to"),
        (Played(body=other("llama-server", "no-draft"), stream=None, metrics=()), "--model-draft"),
        (Played(body=other("sglang", "not-asked-for"), stream=None), "--speculative-algorithm"),
    ],
    ids=["summary", "flag off", "no drafter", "older", "per choice", "llama.cpp", "sglang"],
)
def test_it_says_what_would_tell_more(run: Run, played: Played, words: str) -> None:
    assert words in " ".join(one["change"] for one in as_json(run, played)["more"])


def test_nothing_more_is_asked_of_a_server_that_tells_all(run: Run) -> None:
    assert as_json(run, Played())["more"] == []


def test_words_of_a_server_do_not_act_on_the_terminal(run: Run) -> None:
    played = Played(version="0.32.0\x1b[31m", body=SWITCHED_OFF, stream=None)
    assert "\x1b" not in probed(run, played, "--model", "m\x1b[2J").out
