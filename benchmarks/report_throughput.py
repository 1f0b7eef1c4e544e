"""How fast `outrider report` reads JSON lines of answers, beside a loop that only decodes them.

    python -m benchmarks.report_throughput [--records 200000] [--rounds 5] [--detailed]

Writes a file of synthetic answers with the fields and sizes of real ones, then in turn, round by
round: `orjson.loads` of each line and nothing else; the whole reading with one process; with as
many as there are cores. Prints medians with their range over the rounds, the share of the bare
loop's speed, and the most memory that the command took. With `--rounds 0` only the last.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import orjson
import psutil

from outrider.records.collect import collect, usable_jobs

WORDS = ("the", "model", "answers", "with", "text", "that", "is", "as", "long", "and", "little")


def answers(records: int, *, detailed: bool, seed: int = 0) -> Iterator[bytes]:
    """Yield bodies of chat completions, K = 4, about 60 steps each."""
    rng = random.Random(seed)  # noqa: S311  nothing secret
    for number in range(records):
        drafted = [4] * rng.randint(20, 100)
        accepted = [min(4, int(rng.expovariate(0.9))) for _ in drafted]
        histogram = [accepted.count(length) for length in range(5)]
        steps, total = len(drafted), sum(accepted)
        text = " ".join(rng.choices(WORDS, k=(steps + total) * 3 // 4))
        body = {
            "id": f"chatcmpl-{number:016x}",
            "object": "chat.completion",
            "created": 1796075437,
            "model": "a-model-7b-instruct",
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": text,
                        "refusal": None,
                        "annotations": None,
                        "audio": None,
                        "function_call": None,
                        "reasoning": None,
                    },
                    "logprobs": None,
                    "finish_reason": rng.choice(["stop", "length"]),
                    "stop_reason": None,
                    "token_ids": None,
                    "routed_experts": None,
                }
            ],
            "service_tier": None,
            "system_fingerprint": "vllm-0.33.0-caaa5063",
            "usage": {
                "prompt_tokens": rng.randint(20, 3000),
                "total_tokens": 3000,
                "completion_tokens": 1 + steps + total,
                "prompt_tokens_details": None,
                "completion_tokens_details": None,
            },
            "prompt_logprobs": None,
            "prompt_token_ids": None,
            "kv_transfer_params": None,
            "metrics": {
                "time_to_first_token_ms": None,
                "generation_time_ms": None,
                "queue_time_ms": None,
                "mean_itl_ms": None,
                "tokens_per_second": None,
                "speculative_decoding": {
                    "mean_acceptance_length": 1 + total / steps,
                    "draft_acceptance_rate": total / (4 * steps),
                    "acceptance_histogram": histogram,
                    "num_spec_steps": steps,
                    "num_accepted_draft_tokens": total,
                    "num_draft_tokens": 4 * steps,
                    "num_spec_tokens": 4,
                    "per_step_accepted": accepted if detailed else None,
                    "per_step_drafted": drafted if detailed else None,
                },
            },
        }
        yield json.dumps(body, separators=(",", ":")).encode() + b"\n"


def decode_only(path: Path) -> None:
    """The yardstick: nothing but decoding each line."""
    with path.open("rb") as file:
        for line in file:
            orjson.loads(line)


def read(path: Path, jobs: int) -> None:
    """Everything that `outrider report` does before it makes the report."""
    with httpx2.Client() as http:
        collect([str(path)], by=(), forced=None, stdin=sys.stdin.buffer, http=http, jobs=jobs)


def seconds(work: Callable[[], None]) -> float:
    """Wall time of the work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def command(path: Path) -> tuple[float, float]:
    """Wall time of the whole command in seconds, and the most memory of all its processes in MB.

    A process's memory is what it has to itself (USS), looked at twenty times a second.
    """
    start, peak = time.perf_counter(), 0
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "outrider.cli.entry", "report", str(path), "--format", "json"],
        stdout=subprocess.DEVNULL,
    ) as running:
        process = psutil.Process(running.pid)
        while running.poll() is None:
            peak = max(peak, sum(_own_bytes(each) for each in _family(process)))
            time.sleep(0.05)
    assert running.returncode == 0
    return time.perf_counter() - start, peak / 1e6


def _family(process: psutil.Process) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return [process, *process.children(recursive=True)]
    return []


def _own_bytes(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.memory_full_info().uss)
    return 0


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--detailed", action="store_true", help="with the lengths of each step")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonl"
        with path.open("wb") as file:
            file.writelines(answers(given.records, detailed=given.detailed))
        size_mb = path.stat().st_size / 1e6
        print(f"{given.records:,} records, {size_mb:,.0f} MB, {os.cpu_count()} cores")
        arms: dict[str, Callable[[], None]] = {
            "orjson.loads of each line": lambda: decode_only(path),
            "outrider, 1 process": lambda: read(path, 1),
            f"outrider, {usable_jobs()} processes": lambda: read(path, usable_jobs()),
        }
        taken: dict[str, list[float]] = {name: [] for name in arms}
        for _ in range(given.rounds):
            for name, work in arms.items():
                taken[name].append(seconds(work))
        if given.rounds:
            print_table(taken, given.records)
        wall_s, peak_mb = command(path)
        print(
            f"\nthe whole command: {wall_s:.1f} s, at most {peak_mb:,.0f} MB in all its processes"
        )


def print_table(taken: dict[str, list[float]], records: int) -> None:
    """Prints one row for each way to read."""
    bare = taken["orjson.loads of each line"]
    print("| reading | records/s | share of the bare loop |\n| --- | --- | --- |")
    for name, times in taken.items():
        shares = [yardstick / own for yardstick, own in zip(bare, times, strict=True)]
        print(
            f"| {name} | {records / statistics.median(times):,.0f} |"
            f" {statistics.median(shares):.2f} ({min(shares):.2f}–{max(shares):.2f}) |"
        )


if __name__ == "__main__":
    main()
