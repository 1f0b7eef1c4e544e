"""What a user can get wrong: one line that says what was seen, what was expected, what to do."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from tests.cli.running import Result, Run

from outrider.engine.models.catalogue import CATALOGUE


class Finished(Protocol):
    result: Result
    evidence: Path


def refusal(result: Result) -> str:
    """The one line of a refusal; lines before it say only what was being done."""
    assert result.exit_code == 2
    assert result.out == ""
    assert "Traceback" not in result.err
    *earlier, line = result.err.splitlines()
    assert all(each.startswith("loading ") for each in earlier)
    start, _, rest = line.partition(": ")
    seen, expected, *remedy = rest.split("; ")
    assert start == "outrider"
    assert seen
    assert expected.startswith("expected ")
    assert all(remedy)
    return line


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        (["--k", "0"], "--k '0'"),
        (["--k", "-1"], "--k '-1'"),
        (["--k", "x"], "--k 'x'"),
        (["--k", "2,2"], "--k '2,2'"),
        (["--k", ""], "--k ''"),
        (["--k", "1000"], "--k '1000'"),
        (["--prompt-lookup-min", 6], "--prompt-lookup-min 6 and --prompt-lookup-max 5"),
        (["--prompt-lookup-min", 0], "--prompt-lookup-min 0 and --prompt-lookup-max 5"),
        (["--prompt-lookup-max", 1], "--prompt-lookup-min 2 and --prompt-lookup-max 1"),
        (["--ngram-tie", "newest"], "--ngram-tie newest"),
        (["--repeats", 0], "--repeats 0"),
        (["--repeats", -1], "--repeats -1"),
        (["--repeats", 10**12], "--repeats 1000000000000"),
        (["--seed", -1], "--seed -1"),
        (["--seed", 2**70], f"--seed {2**70}"),
        (["--max-tokens", 0], "--max-tokens 0"),
        (["--threads", 0], "--threads 0"),
        (["--threads", 100_000], "--threads 100000"),
        (["--time-limit", 0], "--time-limit 0"),
        (["--time-limit", -3], "--time-limit -3"),
        (["--time-limit", "nan"], "--time-limit nan"),
        (["--dtype", "float8"], "--dtype float8"),
        (["--backend", "tpu"], "--backend tpu"),
    ],
)
def test_a_setting_out_of_range(
    options: list[object], seen: str, run: Run, tiny_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run.duckdb"
    line = refusal(run("tune", tiny_model, "--output", path, *options))
    assert line.startswith(f"outrider: {seen}; expected ")
    assert not path.exists()


def test_no_model(run: Run) -> None:
    assert "run outrider tune smollm2-135m" in refusal(run("tune"))


@pytest.mark.parametrize("name", ["smollm3", "no/such/model.gguf", "./nowhere", "", "gpt2.bin"])
def test_a_model_that_is_none(name: str, run: Run, tmp_path: Path, cache: Path) -> None:
    line = refusal(run("tune", name, "--output", tmp_path / "run.duckdb"))
    assert repr(name) in line
    assert "use one of smollm2-135m" in line
    assert not cache.exists()


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (b"", "is empty"),
        (b"<html>not found</html>", "starts with b'<htm'"),
        (b"GGUF", "does not parse"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 2**60), "does not parse"),
    ],
)
def test_a_corrupt_gguf_file(content: bytes, seen: str, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "weights.gguf"
    file.write_bytes(content)
    line = refusal(run("tune", file, "--output", tmp_path / "run.duckdb"))
    assert line.startswith(f"outrider: {file} {seen}")


def test_a_half_downloaded_file_in_the_cache(run: Run, tmp_path: Path, cache: Path) -> None:
    entry = CATALOGUE["smollm2-135m"]
    file = cache / entry.hub_id.replace("/", "--") / entry.gguf_filename
    file.parent.mkdir(parents=True)
    file.write_bytes(b"GGUF and half of it")
    line = refusal(run("tune", "smollm2-135m", "--output", tmp_path / "run.duckdb"))
    assert line.startswith(f"outrider: {file} has sha256 ")
    assert f"expected {entry.gguf_sha256}" in line
    assert f"delete {file} and run again" in line


@pytest.fixture
def changed(tiny_model: Path, tmp_path: Path) -> Callable[..., Path]:
    """The tiny model with changes to its config."""

    def change(**changes: object) -> Path:
        folder = tmp_path / "changed"
        shutil.copytree(tiny_model, folder)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | changes))
        return folder

    return change


def test_an_unsupported_family(run: Run, tmp_path: Path, changed: Callable[..., Path]) -> None:
    folder = changed(model_type="mamba")
    line = refusal(run("tune", folder, "--output", tmp_path / "run.duckdb"))
    assert "the model family is 'mamba'; expected one of llama" in line


def test_too_little_memory(run: Run, tmp_path: Path, changed: Callable[..., Path]) -> None:
    folder = changed(hidden_size=65_536, intermediate_size=262_144, num_hidden_layers=200)
    line = refusal(run("tune", folder, "--quick", "--output", tmp_path / "run.duckdb"))
    assert "GiB of memory are free; expected " in line


def test_a_folder_without_a_part(run: Run, tmp_path: Path, changed: Callable[..., Path]) -> None:
    folder = changed()
    for file in folder.glob("tokenizer*"):
        file.unlink()
    line = refusal(run("tune", folder, "--output", tmp_path / "run.duckdb"))
    assert f"{folder} has no tokenizer" in line


def test_weights_cut_short(run: Run, tmp_path: Path, changed: Callable[..., Path]) -> None:
    weights = changed() / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    line = refusal(run("tune", weights.parent, "--output", tmp_path / "run.duckdb"))
    assert f"{weights} does not parse" in line


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        ('{"prompt": "one"}\n{"prompt": \n', "w.jsonl line 2 is not JSON"),
        ("", "w.jsonl has no prompt"),
        ('{"question": "one"}\n', "w.jsonl line 1 has the key 'question'"),
        ('{"prompt": "one", "max_tokens": 0}\n', "w.jsonl line 1 has 0 as max_tokens"),
    ],
)
def test_a_prompt_file_that_does_not_parse(
    content: str, seen: str, run: Run, tiny_model: Path, tmp_path: Path
) -> None:
    file = tmp_path / "w.jsonl"
    file.write_text(content)
    assert seen in refusal(run("tune", tiny_model, "--workload", file))


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_prompt_file_that_cannot_be_read(
    name: str, run: Run, tiny_model: Path, tmp_path: Path
) -> None:
    file = tmp_path / name
    assert f"'{file}' cannot be read" in refusal(run("tune", tiny_model, "--workload", file))


def test_a_prompt_longer_than_the_model_takes(run: Run, tiny_model: Path, tmp_path: Path) -> None:
    file = tmp_path / "w.jsonl"
    file.write_text(json.dumps({"id": "long", "prompt": "x" * 5000, "max_tokens": 10}))
    line = refusal(run("tune", tiny_model, "--workload", file, "--output", tmp_path / "run.duckdb"))
    assert "prompt 'long' and its answer take" in line
    assert "expected at most the model's 4096" in line


def test_a_chat_that_the_models_template_refuses(
    run: Run, tiny_model: Path, tmp_path: Path
) -> None:
    file = tmp_path / "w.jsonl"
    roles = [{"role": role, "content": "hello"} for role in ("system", "user")]
    file.write_text(json.dumps({"id": "s", "messages": roles}))
    line = refusal(run("tune", tiny_model, "--workload", file, "--output", tmp_path / "run.duckdb"))
    assert "in prompt 's' the model's chat template refuses" in line


def test_an_output_in_no_folder(run: Run, tiny_model: Path, tmp_path: Path) -> None:
    line = refusal(run("tune", tiny_model, "--output", tmp_path / "no" / "run.duckdb"))
    assert f"there is no folder {tmp_path / 'no'}" in line


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no folder that root cannot write to")
def test_an_output_in_a_folder_that_cannot_be_written(run: Run, tiny_model: Path) -> None:
    line = refusal(run("tune", tiny_model, "--output", "/proc/self/run.duckdb"))
    assert "the folder /proc/self is read-only" in line


@pytest.mark.parametrize(
    "arguments", [("tune", "x" * 300), ("tune", "--resume", "x" * 300), ("report", "x" * 300)]
)
def test_a_name_that_the_system_refuses(arguments: tuple[str, ...], run: Run) -> None:
    refusal(run(*arguments))


def test_an_output_that_exists(run: Run, tiny_model: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.duckdb"
    file.write_text("mine")
    line = refusal(run("tune", tiny_model, "--output", file))
    assert f"{file} exists already" in line
    assert "--resume" in line
    assert file.read_text() == "mine"


def test_an_output_that_is_a_folder(run: Run, tiny_model: Path, tmp_path: Path) -> None:
    assert f"{tmp_path} is a folder" in refusal(run("tune", tiny_model, "--output", tmp_path))


@pytest.mark.parametrize(
    "options",
    [
        ["smollm2-135m"],
        ["--k", "1"],
        ["--prompt-lookup-min", "1"],
        ["--prompt-lookup-max", "1"],
        ["--ngram-tie", "recent"],
        ["--workload", "w.jsonl"],
        ["--repeats", "1"],
        ["--seed", "0"],
        ["--max-tokens", "1"],
        ["--quick"],
        ["--dtype", "auto"],
        ["--output", "x.duckdb"],
    ],
)
def test_a_resumed_run_takes_its_settings_from_the_file(
    options: list[str], run: Run, finished: Finished
) -> None:
    line = refusal(run("tune", "--resume", finished.evidence, *options))
    name = options[0] if options[0].startswith("--") else "MODEL"
    assert line.startswith(f"outrider: --resume with {name}; expected only --resume")


@pytest.mark.parametrize("content", [None, b"", b"PK\3\4 something else", "folder"])
def test_a_file_that_is_no_evidence(content: bytes | str | None, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "other.duckdb"
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif content:
        file.mkdir()
    line = refusal(run("tune", "--resume", file))
    assert str(file) in line
    assert "expected an evidence file; name the file that `outrider tune` wrote" in line


def test_a_report_in_an_unknown_format(run: Run, finished: Finished) -> None:
    line = refusal(run("report", finished.evidence, "--format", "pdf"))
    assert "report format 'pdf'; expected one of text, md, json, html; use --format text" in line


@pytest.mark.parametrize(
    "arguments",
    [
        ("tune", "--repeats", "many"),
        ("tune", "--no-such"),
        ("report", "--no-such"),
        ("bench",),
        ("tune", 1, 2),
    ],
)
def test_what_is_no_command_line_points_to_the_help(
    arguments: tuple[object, ...], run: Run
) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.out == ""
    assert "Traceback" not in result.err
    assert "--help" in result.err


def test_debug_shows_the_stack_trace_and_changes_nothing_else(run: Run, tmp_path: Path) -> None:
    arguments = ("tune", "no-such-model", "--output", tmp_path / "run.duckdb")
    plain, debug = run(*arguments), run(*arguments, "--debug")
    assert debug.exit_code == plain.exit_code == 2
    assert debug.err.startswith("Traceback (most recent call last):")
    assert debug.err.splitlines()[-1] == plain.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("typed", "told", "page"),
    [
        ("nosuch", "No such command 'nosuch'", "outrider --help"),
        ("tune one two", "unexpected extra argument", "outrider tune --help"),
        ("tune one --nope", "No such option: --nope", "outrider tune --help"),
        ("tune one --repeats many", "Invalid value for '--repeats'", "outrider tune --help"),
        ("train one", "Missing option '--output'", "outrider train --help"),
        ("serve one --port", "'--port' requires an argument", "outrider --help"),
    ],
)
def test_what_no_command_takes_is_told_in_one_line(
    typed: str, told: str, page: str, run: Run
) -> None:
    result = run(*typed.split())
    assert result.exit_code == 2
    [line] = result.err.splitlines()
    assert line.startswith("outrider: ")
    assert told in line
    assert page in line


def test_nothing_typed_shows_the_help(run: Run) -> None:
    result = run()
    assert result.exit_code == 2
    assert "Commands:" in result.out
