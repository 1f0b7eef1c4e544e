"""Benchmarks that people have already, against this server, where they are installed.

They pin versions of what we have too, so each lives in an environment of its own:
`OUTRIDER_VLLM`, `OUTRIDER_GUIDELLM` and `OUTRIDER_AIPERF` name their programs.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.server.serving import NAME, AlphabetModel, api_over, drafting, running

from outrider.engine.tokenizer import Tokenizer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

REQUESTS = 8


def program(name: str) -> str:
    found = os.environ.get(f"OUTRIDER_{name}", "")
    if not os.access(found, os.X_OK):
        pytest.skip(f"OUTRIDER_{name} names no program")
    return found


def told_by(command: str, folder: Path, **environment: str) -> str:
    ran = subprocess.run(
        command.split(),
        cwd=folder,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "COLUMNS": "200"} | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    return ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("backend", "endpoint"),
    [("openai", "/v1/completions"), ("openai-chat", "/v1/chat/completions")],
)
def test_vllm_bench_serve_reads_the_acceptance_of_this_server(
    backend: str, endpoint: str, tiny_model: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    vllm = program("VLLM")
    with running(api_over(AlphabetModel(), tokenizer, drafter=drafting(), k=3)) as server:
        told = told_by(
            f"{vllm} bench serve --backend {backend} --endpoint {endpoint} --model {NAME}"
            f" --base-url {server.url} --tokenizer {tiny_model} --dataset-name random"
            f" --random-input-len 16 --random-output-len 24 --num-prompts {REQUESTS}"
            " --max-concurrency 4 --disable-tqdm --temperature 0",
            tmp_path,
        )
    assert re.search(rf"Successful requests: +{REQUESTS}\b", told)
    assert re.search(r"Acceptance rate \(%\): +100.00", told)
    assert re.search(r"Position 2: +[1-9]", told)


def test_guidellm_is_answered(tiny_model: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    guidellm = program("GUIDELLM")
    with running(api_over(AlphabetModel(), tokenizer)) as server:
        told = told_by(
            f"{guidellm} run --backend kind=openai_http,target={server.url},model={NAME}"
            f" --profile kind=concurrent,streams=4"
            f" --constraint kind=max_requests,count={REQUESTS}"
            f" --tokenizer kind=huggingface_auto,model={tiny_model}"
            " --data kind=synthetic_text,prompt_tokens=16,output_tokens=24"
            f" --output kind=json,path={tmp_path / 'guide.json'}",
            tmp_path,
        )
    assert "Benchmarking complete" in told
    assert '"errored": 0' in re.sub(r"\s+", " ", (tmp_path / "guide.json").read_text())


def test_aiperf_is_answered(tiny_model: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    aiperf = program("AIPERF")
    # It takes a hub's name alone, so the tokenizer has to lie where the hub's cache is.
    snapshot = tmp_path / "hub" / "models--ours--tiny" / "snapshots" / ("0" * 40)
    shutil.copytree(tiny_model, snapshot)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("0" * 40)
    with running(api_over(AlphabetModel(), tokenizer)) as server:
        told = told_by(
            f"{aiperf} profile --model {NAME} --url {server.url} --endpoint-type chat --streaming"
            f" --tokenizer ours/tiny --concurrency 4 --request-count {REQUESTS}"
            " --synthetic-input-tokens-mean 16 --output-tokens-mean 24 --ui none"
            f" --artifact-dir {tmp_path / 'artifacts'}",
            tmp_path,
            HF_HOME=str(tmp_path),
        )
    assert "Benchmark Duration" in told
    export = (tmp_path / "artifacts" / "profile_export_aiperf.json").read_text()
    assert re.search(rf'"request_count":.*?"avg": {REQUESTS}\.0', export, re.DOTALL)
