"""`outrider serve` as a user has it."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from tests.cli.conftest import Run

OPTIONS = ("--backend", "torch", "--dtype", "float32", "--threads", "1", "--max-model-len", "256",
           "--kv-cache-memory", "64MB")  # fmt: skip


@contextmanager
def started(
    model: Path, log: Path, *options: str, **environment: str
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server in a process of its own that writes to `log`, and its address once it is ready."""
    command = [sys.executable, "-m", "outrider.cli.main", "serve", str(model), "--port", "0"]
    with (
        log.open("wb") as file,
        subprocess.Popen(
            [*command, *OPTIONS, *options],
            stdout=file,
            stderr=file,
            env=os.environ | environment,
        ) as process,
    ):
        try:
            while not (found := re.search(r" at (http\S+)/v1", log.read_text())):
                assert process.poll() is None, log.read_text()
                time.sleep(0.05)
            yield process, found[1]
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_says_where_it_is_answers_and_ends_at_a_signal(
    tiny_model: Path, tmp_path: Path, number: signal.Signals
) -> None:
    log = tmp_path / "log"
    options = ("--spec-method", "ngram", "--spec-tokens", "2", "--served-model-name", "t",
               "--enforce-eager")  # fmt: skip
    with started(tiny_model, log, *options, OUTRIDER_API_KEY="sesame") as (process, url):
        with httpx2.Client(base_url=url, timeout=60) as client:
            body = {"prompt": "abab", "max_tokens": 5}
            assert client.post("/v1/completions", json=body).status_code == 401
            key = {"authorization": "Bearer sesame"}
            answer = client.post("/v1/completions", json=body, headers=key)
            assert answer.json()["usage"]["completion_tokens"] <= 5
        process.send_signal(number)
        assert process.wait(60) == 0
    said = log.read_text()
    [ready] = [line for line in said.splitlines() if line.startswith("serving ")]
    assert "serving t (float32, torch)" in ready
    assert "speculation ngram, K = 2" in ready
    assert "cache of " in ready
    assert "sesame" not in said


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--host", "0.0.0.0"), "--host 0.0.0.0 without an API key"),  # noqa: S104
        (("--port", "70000"), "--port 70000"),
        (("--spec-method", "eagle9"), "eagle9"),
        (("--speculative-config", "{"), "--speculative-config is not JSON"),
        (("--speculative-config", '{"methud": "ngram"}'), '"method"'),
        (("--per-request-spec-decode-metrics", "all"), "one of none, summary, detailed"),
        (("--per-request-spec-decode-metrics", "summary"), "requires speculative decoding"),
        (("--kv-cache-memory", "much"), "--kv-cache-memory much"),
        (("--kv-cache-memory-bytes", "1000"), "raise --kv-cache-memory"),
        (("--max-model-len", "99999"), "--max-model-len 99999"),
        (("--max-num-seqs", "0"), "--max-num-seqs 0"),
        (("--drain-timeout", "soon"), "--drain-timeout soon"),
        (("--ssl-certfile", "missing.pem"), "--ssl-certfile missing.pem"),
        (("--api-key-file", "missing.txt"), "--api-key-file missing.txt"),
        (("--api-key", ""), "empty --api-key"),
        (("--chat-template", "missing.jinja"), "--chat-template missing.jinja"),
        (("--enable-per-request-metrics", "--disable-log-stats"), "engine statistics"),
        (("--dtype", "float8"), "--dtype float8"),
        (("--uvicorn-log-level", "loud"), "--uvicorn-log-level loud"),
    ],
)
def test_a_wrong_option_is_one_line(
    run: Run, tiny_model: Path, options: tuple[str, ...], told: str
) -> None:
    result = run("serve", tiny_model, "--port", 0, *OPTIONS, *options)
    assert result.exit_code == 2
    [line] = [each for each in result.err.splitlines() if each.startswith("outrider:")]
    assert told in line


def test_a_port_in_use_is_one_line(run: Run, tiny_model: Path) -> None:

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = run("serve", tiny_model, *OPTIONS, "--port", port)
    assert result.exit_code == 2
    assert f"--port {port}" in result.err


def test_a_model_that_is_none_is_one_line(run: Run) -> None:
    result = run("serve", "no-such-model", "--port", 0)
    assert result.exit_code == 2
    assert "no-such-model" in result.err


def test_the_document_names_no_flag_that_there_is_not(run: Run) -> None:
    told = run("serve", "--help").out
    text = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()
    of_benchmarks = re.compile(r"`python -m benchmarks[^`]*`")
    named, there_are = (
        set(re.findall(r"--[a-z-]+[a-z]", each)) for each in (of_benchmarks.sub("", text), told)
    )
    assert len(named) > 10
    assert named - there_are <= {"--help"}
