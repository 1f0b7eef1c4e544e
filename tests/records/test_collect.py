import io
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from outrider.records import collect as module
from outrider.records.collect import collect
from outrider.records.collecting import Collection
from outrider.records.sources import line_ranges


def body(number: int, histogram: list[int]) -> dict[str, Any]:
    steps, accepted = sum(histogram), sum(j * n for j, n in enumerate(histogram))
    k = len(histogram) - 1
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "model": "a-model",
        "choices": [{"finish_reason": "stop", "message": {"content": "text " * 20}}],
        "usage": {"prompt_tokens": 10 * number, "completion_tokens": steps + accepted + 1},
        "metrics": {
            "speculative_decoding": {
                "mean_acceptance_length": 1 + accepted / steps,
                "draft_acceptance_rate": accepted / (k * steps),
                "acceptance_histogram": histogram,
                "num_spec_steps": steps,
                "num_accepted_draft_tokens": accepted,
                "num_draft_tokens": k * steps,
                "num_spec_tokens": k,
            }
        },
    }


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """300 answers, of which some are broken, doubled or not as plain as the others."""
    lines = []
    for number in range(300):
        one = body(number, [number % 7 + 1, 3, number % 4])
        if number % 50 == 17:
            one["metrics"]["speculative_decoding"]["num_spec_steps"] += 1
        if number % 50 == 18:
            one["choices"][0]["stop_reason"] = "###"
        if number % 90 == 40:
            one["id"] = "chatcmpl-3"
        lines.append(json.dumps(one))
    lines[77] = lines[77][:60]
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(path: Path, jobs: int, by: tuple[str, ...] = ()) -> Collection:
    with httpx2.Client() as http:
        return collect([str(path)], by=by, forced=None, stdin=io.BytesIO(), http=http, jobs=jobs)


def counts(collection: Collection) -> dict[str, Any]:
    return {
        "cells": {key: totals.sums.round(6).tolist() for key, totals in collection.cells.items()},
        "read": (collection.read, collection.used, collection.bad_count),
        "no_metrics": collection.no_metrics,
        "bad": sorted(collection.bad),
        "keys": (collection.keys, collection.told_keys),
    }


def test_several_processes_read_what_one_does(
    answers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        module, "line_ranges", lambda path: line_ranges.line_ranges(path, range_bytes=20_000)
    )
    alone = counts(read(answers, jobs=1))
    together = counts(read(answers, jobs=2))
    assert together == alone
    assert alone["read"] == (300, 290, 10)
    lines = {place.line for place, _ in alone["bad"]}
    assert {18, 41, 78, 131, 221} <= lines


def test_a_key_given_up_in_a_batch_is_given_up_for_what_came_before_it(tmp_path: Path) -> None:
    lines = []
    for number in range(90):
        one = body(number, [3, 2, 1])
        one["model"] = f"model-{number}"
        if number < 5:
            one["choices"][0]["stop_reason"] = "###"  # read one by one, and buffered
        lines.append(json.dumps(one))
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    collection = read(path, jobs=1)
    assert "model" in collection.dropped_keys
    assert collection.used == 90
    assert sum(totals.count("records") for totals in collection.cells.values()) == 90


def test_asked_keys_are_kept_by_all_processes(
    answers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        module, "line_ranges", lambda path: line_ranges.line_ranges(path, range_bytes=50_000)
    )
    collection = read(answers, jobs=2, by=("finish_reason",))
    assert collection.keys[0] == "finish_reason"
    assert "prompt_length" not in collection.keys
