"""The command line as a user has it, on a tiny model."""

import io
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from outrider.cli.main import main

PROMPTS = (
    ("chat", "the cat sat on the cat"),
    ("chat", "what is a cat?"),
    ("copy", "Copy: one two three one two"),
    ("copy", "abcabcabc hello"),
    ("code", "x = 1; y = 2"),
    ("code", "print(print(1))"),
)


@dataclass(frozen=True)
class Result:
    """How a command ended and what it wrote."""

    exit_code: int | str | None
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture(scope="session")
def run() -> Iterator[Run]:
    """Runs `outrider` with the given arguments, in this process."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    handlers, threads = [*map(signal.getsignal, numbers)], torch.get_num_threads()

    def run_here(*arguments: object) -> Result:
        out, err = io.StringIO(), io.StringIO()
        with (
            redirect_stdout(out),
            redirect_stderr(err),
            pytest.raises(SystemExit) as stopped,
        ):
            main([str(argument) for argument in arguments])
        return Result(stopped.value.code, out.getvalue(), err.getvalue())

    yield run_here
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty model cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("OUTRIDER_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prompt file of three kinds."""
    file = tmp_path_factory.mktemp("workloads") / "six.jsonl"
    rows = [
        {"id": f"p{i}", "kind": kind, "prompt": text, "max_tokens": 24}
        for i, (kind, text) in enumerate(PROMPTS)
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


@pytest.fixture(scope="session")
def quiet() -> tuple[str, ...]:
    """Options that make a run of the tiny model the same everywhere."""
    return ("--backend", "torch", "--dtype", "float32", "--threads", "1")


@dataclass(frozen=True)
class Finished:
    """A complete run: what `outrider tune` wrote, and its evidence."""

    result: Result
    evidence: Path


@pytest.fixture(scope="session")
def finished(
    run: Run,
    tiny_model: Path,
    workload: Path,
    quiet: tuple[str, ...],
    tmp_path_factory: pytest.TempPathFactory,
) -> Finished:
    """A complete run of six prompts, two repeats and three arms; do not write its evidence."""
    path = tmp_path_factory.mktemp("finished") / "run.duckdb"
    result = run(
        "tune", tiny_model, "--workload", workload, "--repeats", 2, "--k", "1,2",
        "--prompt-lookup-min", 1, "--output", path, *quiet,
    )  # fmt: skip
    return Finished(result, path)
