"""`outrider replay` as a user has it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Finished
from tests.cli.running import Run

from outrider.records.evidence import Evidence
from outrider.records.evidence_reader import read_evidence
from outrider.records.request import RequestRecord


def log_of(evidence: Evidence, requests: list[RequestRecord], path: Path) -> Path:
    """A log with the token ids of some requests of a run."""
    prompts = {prompt.prompt_id: prompt for prompt in evidence.prompts}
    with path.open("w") as file:
        for each in requests:
            prompt = prompts[each.prompt_id]
            row = {
                "prompt_token_ids": prompt.token_ids,
                "completion_token_ids": each.output_token_ids,
                "max_tokens": prompt.max_tokens,
                "kind": prompt.kind,
            }
            file.write(f"{json.dumps(row)}\n")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of 60 short answers that repeat themselves, and two lines that are none."""
    path = tmp_path / "log.jsonl"
    rows: list[Any] = [
        {
            "prompt_token_ids": [each, 1, 2, 3, 4, 5],
            "completion_token_ids": [1, 2, 3, 4, each, 2, 3, 4, 5, 1],
            "kind": "copy" if each % 2 else "chat",
        }
        for each in range(50, 110)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, {"completion_ids": []}, 7]))
    return path


def test_the_answers_of_a_run_replay_to_the_steps_of_that_run(
    run: Run, finished: Finished, tmp_path: Path
) -> None:
    evidence = read_evidence(finished.evidence)
    for k in (1, 2):
        measured = [each for each in evidence.measured if each.arm == f"ngram K={k}"]
        log = log_of(evidence, measured, tmp_path / f"k{k}.jsonl")
        done = run(
            "replay", log, "--drafter", "ngram", "--k", k, "--prompt-lookup-min", 1,
            "--format", "json",
        )  # fmt: skip
        assert done.exit_code == 0, done.err
        report = json.loads(done.out)
        [whole] = report["whole"] or report["segments"]
        steps = [s for each in measured for s in each.steps]
        drafted = [s for s in steps if s.drafted]
        accepted = [s.accepted_emitted for s in drafted]
        assert whole["histogram"] == [accepted.count(length) for length in range(k + 1)]
        assert whole["drafted"] == sum(s.drafted for s in drafted)
        assert whole["coverage"] == pytest.approx(len(drafted) / len(steps))
        assert whole["completion_tokens"] == sum(len(e.output_token_ids) for e in measured)


def test_the_first_screen_compares_the_settings_and_says_what_is_missing(
    run: Run, log: Path
) -> None:
    done = run("replay", log, "--k", "1:4", "--warm-cache")
    assert done.exit_code == 0, done.err
    screen = "\n".join(done.out.splitlines()[:30])
    assert "Most is gained with" in screen
    for name in ("ngram 2–5 recent", "suffix", "suffix own text only"):
        assert name in screen
    assert "give --step-cost" in screen
    assert "--speculative-config" in screen
    assert "62 read: 60 used" not in screen
    assert "62 read: 60 used, 0 without metrics, 2 bad" in done.out


def test_json_has_a_segment_for_every_setting_and_k(run: Run, log: Path) -> None:
    done = run("replay", log, "--k", "1,3", "--by", "kind", "--format", "json")
    report = json.loads(done.out)
    assert {(each["segment"]["drafter"], each["k"]) for each in report["segments"]} == {
        (name, k) for name in ("ngram 2–5 recent", "suffix") for k in (1, 3)
    }
    assert {each["segment"]["kind"] for each in report["segments"]} == {"chat", "copy"}
    assert report["schema"] == "outrider.report/1"
    assert [each["setting"] for each in report["replay"]["settings"]]
    assert report["records"]["bad_count"] == 2


def test_a_step_cost_that_eats_the_gain_says_that_none_pays(run: Run, log: Path) -> None:
    done = run("replay", log, "--drafter", "ngram", "--k", "1:3", "--step-cost", "0:1,1:9,2:9,3:9")
    assert "None pays at this step cost, so leave speculation off" in done.out
    assert "--speculative-config" not in done.out


def test_a_cheap_step_pays_and_its_flags_are_those_of_the_server(run: Run, log: Path) -> None:
    done = run(
        "replay", log, "--drafter", "suffix", "--k", 3, "--step-cost", "1,0", "--format", "md",
        "--suffix-decoding-max-spec-factor", "2",
    )  # fmt: skip
    assert "Best is suffix factor 2 at K = 3: predicted" in done.out
    line = next(line for line in done.out.splitlines() if "--speculative-config" in line)
    config = json.loads(line[line.index("{") : line.rindex("}") + 1].replace("\\", ""))
    assert config == {
        "method": "suffix",
        "num_speculative_tokens": 3,
        "suffix_decoding_max_spec_factor": 2.0,
    }


def test_a_log_in_which_nothing_comes_again_has_nothing_to_serve(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [
        {"prompt_token_ids": [each, each + 1], "completion_token_ids": [*range(each + 2, each + 9)]}
        for each in range(0, 100, 10)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    done = run("replay", path, "--k", "1:4")
    assert done.exit_code == 0
    assert done.err == ""
    assert "Nothing is gained, so leave speculation off" in done.out
    assert "--speculative-config" not in done.out


def test_a_key_that_is_named_twice_makes_segments_once(run: Run, log: Path) -> None:
    done = run("replay", log, "--k", "2", "--by", "kind", "--by", "kind")
    assert done.exit_code == 0, done.err
    assert "kind chat " in done.out
    assert "kind chat, kind" not in done.out


def test_the_page_has_the_settings(run: Run, log: Path, tmp_path: Path) -> None:
    page = tmp_path / "replay.html"
    done = run("replay", log, "--k", "1,2", "--output", page)
    assert done.exit_code == 0, done.err
    text = page.read_text()
    assert "Settings side by side" in text
    assert "ngram 2–5 recent" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--drafter", "eagle"], "--drafter 'eagle'; expected one of ngram, suffix"),
        (["--k", "0"], "--k '0'"),
        (["--ngram-tie", "last"], "one of recent, earliest"),
        (["--by", "nothing"], "--by nothing, which no record has"),
        (["--from", "csv"], "one of token-ids, body, text, conversation"),
        (["--format", "pdf"], "one of text, md, json, html"),
        (["--jobs", "0"], "--jobs 0"),
        (["--vocab-size", "0"], "--vocab-size 0"),
        (["--step-cost", "cheap"], "--step-cost cheap"),
        (["--step-cost", "1:12ms"], "without the cost of K = 0"),
        (["--step-cost", "0:1,9:2", "--k", "1:3"], "at least one of K = 1, 2, 3"),
        (["--tokenizer", "missing/tokenizer.json"], "which does not exist"),
        (["--from", "text"], "no answer to replay in 62 records"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], told: str, run: Run, log: Path) -> None:
    done = run("replay", log, *arguments)
    assert done.exit_code in (2, 3)
    assert len(done.err.splitlines()) == 1
    assert told in done.err


def test_a_log_of_text_says_that_its_tokens_are_a_tokenizers(
    run: Run, tiny_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "text.jsonl"
    messages = [{"role": "user", "content": "copy: one two three"}]
    path.write_text(json.dumps({"messages": messages, "response": "one two three"}) + "\n")
    for tokenizer in (tiny_model, tiny_model / "tokenizer.json"):
        done = run("replay", path, "--tokenizer", tokenizer, "--k", 4, "--drafter", "ngram")
        assert done.exit_code == 0, done.err
        assert "1 of 1 answers were logged as text and cut into" in done.out
        # Bytes are tokens here: all but the first letters of the copy are found in the prompt.
        assert "over 1 answer," in " ".join(done.out.split())


def test_a_log_of_single_tokens_has_no_step_to_replay(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "short.jsonl"
    path.write_text(json.dumps({"prompt_token_ids": [1, 2], "completion_token_ids": [3]}) + "\n")
    done = run("replay", path)
    assert done.exit_code == 3
    assert "each answer is of one token, which comes from the prefill" in done.err
