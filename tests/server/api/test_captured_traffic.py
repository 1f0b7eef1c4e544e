"""Requests that a vLLM server was sent, and the shapes of its answers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.server.asking import chunks_of
from tests.server.serving import AlphabetModel, api_over, drafting, running

from outrider.engine.tokenizer import Tokenizer
from outrider.server.api.settings import ApiSettings, ResponseMetrics

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "vllm-0.32.jsonl").read_text().splitlines()
]
MODEL = "smollm2-135m-instruct"


@pytest.fixture(scope="module")
def servers(tokenizer: Tokenizer) -> Iterator[dict[str, httpx2.Client]]:
    """One without speculation and one with, as the captured ones were."""
    plain = ApiSettings(model_names=(MODEL,))
    told = ApiSettings(model_names=(MODEL,), metrics=ResponseMetrics(spec_decode="detailed"))
    with (
        running(api_over(AlphabetModel(), tokenizer, settings=plain)) as first,
        running(
            api_over(AlphabetModel(), tokenizer, settings=told, drafter=drafting(), k=3)
        ) as second,
        httpx2.Client(base_url=first.url) as baseline,
        httpx2.Client(base_url=second.url) as speculating,
    ):
        yield {"baseline": baseline, "ngram-detailed": speculating}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['server']}-{case['case']}")
def test_the_same_request_gets_the_same_keys_and_types(
    servers: dict[str, httpx2.Client], case: dict[str, Any]
) -> None:
    request = json.loads(json.dumps(case["request"]).replace("OVERFLOW", "word " * 300))
    response = servers[case["server"]].post(case["path"], json=request)
    assert response.status_code == case["status"], response.text
    if "body" in case:
        assert missing(case["body"], response.json()) == []
        return
    chunks = chunks_of(response.text)
    for expected in case["chunks"]:
        closest = min((missing(expected, chunk) for chunk in chunks), key=len)
        assert closest == []


def missing(expected: Any, found: Any, at: str = "") -> list[str]:
    """Where `found` lacks a key of `expected`, or has another type; more keys are no harm.

    What vLLM leaves null may be told, and the other way round where a value depends on the answer.
    """
    if expected is None or (found is None and at.endswith(_MAY_BE_NULL)):
        return []
    kinds = {int, float} if isinstance(expected, float) else {type(expected)}
    if type(found) not in kinds:
        return [f"{at} is {found!r}"]
    if isinstance(expected, dict):
        lacking = [f"{at}.{key}" for key in expected if key not in found]
        there = [key for key in expected if key in found]
        return lacking + [
            each for key in there for each in missing(expected[key], found[key], f"{at}.{key}")
        ]
    if isinstance(expected, list) and bool(expected) != bool(found):
        return [f"{at} has {len(found)}"]
    return (
        missing(expected[0], found[0], f"{at}[0]") if isinstance(expected, list) and found else []
    )


_MAY_BE_NULL = ("stop_reason", "per_step_accepted", "per_step_drafted")


def test_the_comparison_sees_a_missing_key_and_a_wrong_type() -> None:
    assert missing({"a": {"b": 1}}, {"a": {}}) == [".a.b"]
    assert missing({"a": [1]}, {"a": ["x"]}) == [".a[0] is 'x'"]
    assert missing({"a": 1}, {"a": 1, "b": 2}) == []
