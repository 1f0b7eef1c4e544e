"""`outrider report` on captured answers, counters and histograms, as a user has it."""

import gzip
import io
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backports import zstd
from tests.cli.running import Result, Run

CASES = Path(__file__).parents[1] / "records" / "cases"
BEFORE = CASES / "prometheus" / "vllm-0.32-ngram-before.prom"
AFTER = CASES / "prometheus" / "vllm-0.32-ngram-after.prom"


@pytest.fixture
def responses(tmp_path: Path) -> Path:
    """Six copying answers and six writing ones."""
    path = tmp_path / "responses.jsonl"
    lines = []
    for number in range(12):
        histogram = [2, 0, 18] if number % 2 else [19, 1, number]
        steps, accepted = sum(histogram), histogram[1] + 2 * histogram[2]
        figures = {
            "acceptance_histogram": histogram,
            "num_spec_steps": steps,
            "num_accepted_draft_tokens": accepted,
            "num_draft_tokens": 2 * steps,
            "num_spec_tokens": 2,
        }
        body = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "model": "a-model",
            "choices": [{"finish_reason": "stop", "message": {"content": "text"}}],
            "usage": {"prompt_tokens": 20, "completion_tokens": steps + accepted + 1},
            "metrics": {"speculative_decoding": figures},
        }
        kind = "copy" if number % 2 else "write"
        lines.append(json.dumps({"request": {"temperature": 0}, "response": body, "kind": kind}))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def as_json(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.err
    content: dict[str, Any] = json.loads(result.out)
    return content


def test_answers_of_two_kinds_are_split_without_being_asked(run: Run, responses: Path) -> None:
    content = as_json(run("report", responses, "--format", "json"))
    assert content["split"]["key"] == "kind"
    assert [each["segment"]["kind"] for each in content["segments"]] == ["copy", "write"]
    assert content["pooled"]["requests"] == 12


@pytest.mark.parametrize("form", ["text", "md", "html", "json"])
def test_every_form_has_the_verdict(form: str, run: Run, responses: Path) -> None:
    result = run("report", responses, "--format", form)
    assert result.exit_code == 0
    assert "verification step" in " ".join(result.out.split())


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_a_compressed_file_gives_the_same(
    pack: Callable[[bytes], bytes], run: Run, responses: Path
) -> None:
    packed = responses.with_name("packed")
    packed.write_bytes(pack(responses.read_bytes()))
    plain, other = (
        as_json(run("report", path, "--format", "json")) for path in (responses, packed)
    )
    assert other["segments"] == plain["segments"]


def test_standard_input_and_typed_numbers_are_sources(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = as_json(run("report", "[39, 1, 0, 3]", "--format", "json"))
    standard_input = io.TextIOWrapper(io.BytesIO(b'{"histogram": [39, 1, 0, 3], "drafted": 129}'))
    monkeypatch.setattr("sys.stdin", standard_input)
    piped = as_json(run("report", "-", "--format", "json"))
    assert typed["segments"][0]["histogram"] == piped["segments"][0]["histogram"]
    assert typed["segments"][0]["drafted"] is None
    assert piped["segments"][0]["drafted"] == 129


def test_two_scrapes_are_subtracted(run: Run) -> None:
    content = as_json(run("report", "--before", BEFORE, "--after", AFTER, "--format", "json"))
    [segment] = content["segments"]
    assert (segment["steps"], segment["accepted"], segment["drafted"]) == (3183, 2570, 9459)
    assert segment["segment"]["scope"] == "interval"


def test_compressed_scrapes_are_subtracted_too(run: Run, tmp_path: Path) -> None:
    packed = []
    for path in (BEFORE, AFTER):
        packed.append(tmp_path / f"{path.name}.gz")
        packed[-1].write_bytes(gzip.compress(path.read_bytes()))
    content = as_json(
        run("report", "--before", packed[0], "--after", packed[1], "--format", "json")
    )
    assert content["segments"][0]["steps"] == 3183


def test_a_pipe_is_read_from_its_beginning(run: Run, responses: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(responses.read_bytes()))
    writer.start()
    content = as_json(run("report", pipe, "--format", "json"))
    writer.join()
    assert content["records"]["used"] == 12
    assert content["records"]["bad_count"] == 0


def test_a_file_named_twice_is_read_once(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes((CASES / "logs" / "vllm-0.32-ngram.log").read_bytes())
    once = as_json(run("report", log, "--format", "json"))
    twice = as_json(run("report", log, tmp_path, log, "--format", "json"))
    assert twice["segments"] == once["segments"]
    assert twice["records"]["no_metrics"] == {"the same file was read before": 2}


def test_more_values_than_are_found_by_themselves_can_be_asked_for(
    run: Run, responses: Path
) -> None:
    bodies = [json.loads(line)["response"] for line in responses.read_text().splitlines()]
    lines = []
    for number in range(140):
        body = {**bodies[number % 12], "id": f"chatcmpl-{number}"}
        lines.append(json.dumps({"group": f"g{number % 70}", "response": body}))
    responses.write_text("\n".join(lines), encoding="utf-8")
    content = as_json(run("report", responses, "--by", "group", "--format", "json"))
    assert len(content["segments"]) == 70


def test_models_that_cannot_be_told_apart_give_no_verdict(run: Run, responses: Path) -> None:
    line = responses.read_text().splitlines()[0]
    lines = [
        line.replace("a-model", f"model-{number}").replace("chatcmpl-0", f"chatcmpl-{number}")
        for number in range(70)
    ]
    responses.write_text("\n".join(lines), encoding="utf-8")
    content = as_json(run("report", responses, "--format", "json"))
    assert content["pooled"] is None
    assert "more different values of model" in content["pooled_refused"]
    assert content["verdict"].startswith("No verdict")


def test_a_device_or_pipe_is_written_to_and_not_replaced(
    run: Run, responses: Path, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    assert run("report", responses, "--format", "json", "--output", pipe).exit_code == 0
    reader.join()
    assert json.loads(read[0])["schema"] == "outrider.report/1"
    assert pipe.is_fifo()


def test_one_scrape_is_since_the_server_started(run: Run) -> None:
    content = as_json(run("report", AFTER, "--format", "json"))
    assert content["segments"][0]["segment"]["scope"] == "server"
    assert content["segments"][0]["steps"] == 3325


def test_partial_reports_merge_to_the_report_of_all(
    run: Run, responses: Path, tmp_path: Path
) -> None:
    lines = responses.read_text(encoding="utf-8").splitlines(keepends=True)
    for number, part in enumerate((lines[:5], lines[5:])):
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(part), encoding="utf-8")
        result = run("report", path, "--partial", tmp_path / f"{number}.partial")
        assert (result.exit_code, result.out) == (0, "")
    whole = as_json(run("report", responses, "--format", "json"))
    merged = as_json(
        run("report", tmp_path / "0.partial", tmp_path / "1.partial", "--format", "json")
    )
    for name in ("segments", "whole", "pooled", "split", "verdict", "records"):
        assert merged[name] == whole[name], name


def test_nothing_of_a_partial_report_counts_twice(
    run: Run, responses: Path, tmp_path: Path
) -> None:
    partial = tmp_path / "a.partial"
    assert run("report", responses, "--partial", partial).exit_code == 0
    once = as_json(run("report", partial, "--format", "json"))
    copy = tmp_path / "b.partial"
    copy.write_bytes(partial.read_bytes())
    for sources in ((partial, copy), (partial, responses), (responses, partial)):
        content = as_json(run("report", *sources, "--format", "json"))
        assert content["segments"] == once["segments"]
        assert content["records"]["bad_count"] > 0


def test_a_report_is_a_baseline_for_the_next(run: Run, responses: Path, tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.json"
    assert run("report", responses, "--format", "json", "--output", baseline).exit_code == 0
    assert run("report", responses, "--fail-under", baseline).exit_code == 0
    worse = tmp_path / "worse.jsonl"
    worse.write_text(responses.read_text().replace("[2, 0, 18]", "[18, 0, 2]"), encoding="utf-8")
    worse.write_text(
        worse.read_text().replace(
            '"num_accepted_draft_tokens": 36', '"num_accepted_draft_tokens": 4'
        ),
        encoding="utf-8",
    )
    result = run("report", worse, "--fail-under", baseline)
    assert result.exit_code == 1
    assert "fall short" in result.err.splitlines()[-1]


@pytest.mark.parametrize(("least", "code"), [("1.1", 0), ("2.9", 1)])
def test_a_number_is_a_gate(least: str, code: int, run: Run, responses: Path) -> None:
    assert run("report", responses, "--fail-under", least).exit_code == code


@pytest.mark.parametrize(
    ("name", "later"), [("text", "\nSegments"), ("md", "## Segments"), ("html", "Segments</h2>")]
)
def test_what_was_expected_stands_near_the_top_and_changes_no_exit_code(
    name: str, later: str, run: Run, responses: Path
) -> None:
    result = run("report", responses, "--expect", "2.95,k=2,dataset=mt-bench", "--format", name)
    assert (result.exit_code, result.err) == (0, "")
    titles = ("Expected and measured", "What may cause it", later)
    assert sorted(titles, key=result.out.index) == list(titles)
    assert "Expected and measured" not in run("report", responses, "--format", name).out


def test_a_stored_report_is_what_the_next_is_expected_to_be(
    run: Run, responses: Path, tmp_path: Path
) -> None:
    stored = tmp_path / "stored.json"
    assert run("report", responses, "--format", "json", "--output", stored).exit_code == 0
    content = as_json(run("report", responses, "--expect", stored, "--format", "json"))
    told = [each["expected"]["outcome"] for each in (*content["segments"], *content["whole"])]
    assert set(told) == {"as expected"}


@pytest.mark.parametrize(
    "cost", ["1,0.1", "12ms,0.5ms", "0:1,1:1.1,2:1.2", "k,ms\n0,10\n1,11\n2,12\n"]
)
def test_a_step_cost_says_what_k_is_worth(
    cost: str, run: Run, responses: Path, tmp_path: Path
) -> None:
    if "\n" in cost:
        (tmp_path / "cost.csv").write_text(cost, encoding="utf-8")
        cost = str(tmp_path / "cost.csv")
    content = as_json(run("report", responses, "--step-cost", cost, "--format", "json"))
    best = {each["segment"]["kind"]: each["best_k"] for each in content["segments"]}
    assert best["copy"] == 2


def test_measured_throughput_is_a_step_cost_too(run: Run, responses: Path, tmp_path: Path) -> None:
    path = tmp_path / "measured.csv"
    path.write_text(
        "k,tokens_per_s,mean_acceptance_length\n0,128.64,1\n2,175.49,1.89\n4,165.65,2.08\n"
    )
    content = as_json(run("report", responses, "--step-cost", path, "--format", "json"))
    assert content["whole"][0]["best_k"] is not None


@pytest.mark.parametrize("option", ["--output", "--partial"])
def test_a_source_is_never_overwritten(option: str, run: Run, responses: Path) -> None:
    before = responses.read_bytes()
    result = run("report", responses, option, responses)
    assert result.exit_code == 2
    assert "which is also read" in result.err
    assert responses.read_bytes() == before


@pytest.mark.parametrize("name", ["report.html", "report.md", "report.json", "report.txt"])
def test_the_form_follows_the_name_of_the_file(
    name: str, run: Run, responses: Path, tmp_path: Path
) -> None:
    assert run("report", responses, "--output", tmp_path / name).exit_code == 0
    written = (tmp_path / name).read_text(encoding="utf-8")
    start = {"html": "<!doctype html>", "md": "# Acceptance", "json": "{", "txt": "\nAcceptance"}
    assert written.lower().startswith(start[name.partition(".")[2]].lower())


def test_several_keys_may_stand_in_one_by(run: Run, responses: Path) -> None:
    content = as_json(run("report", responses, "--by", "kind,sampling", "--format", "json"))
    assert {"kind", "sampling"} <= content["segments"][0]["segment"].keys()


def test_a_key_nearly_right_is_proposed(run: Run, responses: Path) -> None:
    assert "use --by prompt_length" in run("report", responses, "--by", "prompt-length").err


def test_nothing_usable_is_exit_code_3_with_the_reasons(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "plain.prom"
    path.write_bytes((CASES / "prometheus" / "vllm-0.32-no-speculation.prom").read_bytes())
    result = run("report", path)
    assert result.exit_code == 3
    [line] = result.err.splitlines()
    assert "speculation is off" in line


def test_an_evidence_file_among_others_is_a_source(
    run: Run, finished: Any, responses: Path
) -> None:
    content = as_json(run("report", finished.evidence, responses, "--format", "json"))
    assert {each["segment"]["engine"] for each in content["segments"]} == {"outrider", "vllm"}
    assert "run" not in content
    assert content["pooled"] is None


def test_an_evidence_file_alone_gives_its_run_and_its_segments(run: Run, finished: Any) -> None:
    content = as_json(run("report", finished.evidence, "--format", "json"))
    assert content["schema"] == "outrider.report/1"
    assert content["run"]["schema"] == "outrider.run/1"
    assert {each["k"] for each in content["segments"]} == {1, 2}
    by_kind = as_json(run("report", finished.evidence, "--by", "kind", "--format", "json"))
    assert {each["segment"]["kind"] for each in by_kind["segments"]} == {"chat", "copy", "code"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "no source"),
        (("missing.jsonl",), "missing.jsonl does not exist"),
        (("[1, 2]", "--from", "nothing"), "--from nothing"),
        (("[1, 2]", "--by", "nothing"), "--by nothing, which no record has"),
        (("--before", BEFORE), "--before alone"),
        (("--after", AFTER), "--after alone"),
        (("--before", "missing", "--after", AFTER), "missing does not exist"),
        (("--before", AFTER, "--after", BEFORE), "swap the two"),
        (("[1, 2]", "--partial", "a.partial", "--fail-under", "1"), "--partial with --fail-under"),
        (("[1, 2]", "--partial", "a.partial", "--expect", "2"), "--partial with --expect"),
        (("[1, 2]", "--expect", "abc"), "--expect abc: no such file"),
        (("[1, 2]", "--expect", "0.5"), "--expect 0.5"),
        (("[1, 2]", "--expect", "a" * 5000), ": file name too long"),
        (("[1, 2]", "--expect", "5,k=-1"), "k to be a whole number"),
        (("[1, 2]", "--expect", "5,colour=red"), "NAME=VALUE with one of template"),
        (("[1, 2]", "--for", "60s"), "--for 60s with [1, 2]"),
        (("http://127.0.0.1:9/", "--for", "soon"), "--for soon"),
        (("[1, 2]", "--step-cost", "cheap"), "--step-cost cheap"),
        (("[1, 2]", "--step-cost", ""), "--step-cost "),
        (("[1, 2]", "--step-cost", "1e308,1e308"), "costs 1e+308"),
        (("[1, 2]", "--step-cost", "1e-320,0"), "--step-cost 1e-320,0"),
        (("[1, 2]", "--fail-under", ""), "--fail-under"),
        (("[1, 2]", "--output", ""), "cannot be written"),
        (("[1, 2]", "--partial", "."), "cannot be written"),
        (("[1, 2]", "--fail-under", "nothing.json"), "--fail-under nothing.json"),
        (("[1, 2]", "--jobs", "0"), "--jobs 0"),
        (("[1, 2]", "--format", "pdf"), "report format 'pdf'"),
        (("[1, 2]", "--output", "missing/report.html"), "'missing/report.html' cannot be written"),
        (("[1, 2]", "--partial", "missing/a.partial"), "'missing/a.partial' cannot be written"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    options: tuple[object, ...],
    told: str,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("report", *options)
    assert result.exit_code == 2
    [line] = result.err.splitlines()
    assert line.startswith("outrider: ")
    assert told in line
