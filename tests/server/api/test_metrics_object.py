from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest
from tests.server.asking import COMPLETIONS, chat, complete, stream
from tests.server.serving import NAME, AlphabetModel, api_over, drafting, running

from outrider.engine.tokenizer import Tokenizer
from outrider.server.api.settings import ApiSettings, ResponseMetrics

K = 3
VLLM = {
    "mean_acceptance_length", "draft_acceptance_rate", "acceptance_histogram", "num_spec_steps",
    "num_accepted_draft_tokens", "num_draft_tokens", "num_spec_tokens", "per_step_accepted",
    "per_step_drafted",
}  # fmt: skip
TIMES = {
    "time_to_first_token_ms", "generation_time_ms", "queue_time_ms", "mean_itl_ms",
    "tokens_per_second",
}  # fmt: skip


@contextmanager
def speculating(tokenizer: Tokenizer, metrics: ResponseMetrics) -> Iterator[httpx2.Client]:
    settings = ApiSettings(model_names=(NAME,), metrics=metrics)
    api = api_over(AlphabetModel(), tokenizer, settings=settings, drafter=drafting(), k=K)
    with running(api) as server, httpx2.Client(base_url=server.url) as client:
        yield client


@pytest.fixture(scope="module")
def detailed(tokenizer: Tokenizer) -> Iterator[httpx2.Client]:
    with speculating(tokenizer, ResponseMetrics(spec_decode="detailed")) as client:
        yield client


@pytest.fixture(scope="module")
def strict(tokenizer: Tokenizer) -> Iterator[httpx2.Client]:
    with speculating(tokenizer, ResponseMetrics(spec_decode="detailed", strict=True)) as client:
        yield client


def test_a_body_tells_each_step(detailed: httpx2.Client) -> None:
    metrics = chat(detailed, max_tokens=9)["metrics"]
    assert set(metrics) == TIMES | {"speculative_decoding"}
    assert all(metrics[name] is None for name in TIMES)
    told = metrics["speculative_decoding"]
    # One token from the prefill, then two steps of three drafted tokens and one beside.
    assert told["per_step_accepted"] == [3, 3]
    assert told["acceptance_histogram"] == [0, 0, 0, 2]
    assert told["mean_acceptance_length"] == 4.0
    assert set(told) > VLLM


def test_a_stream_tells_the_same_on_its_last_chunk(detailed: httpx2.Client) -> None:
    chunks = stream(detailed, max_tokens=9, stream_options={"include_usage": True})
    assert all("metrics" not in chunk for chunk in chunks[:-1])
    told = chunks[-1]["metrics"]["speculative_decoding"]
    assert told["per_step_accepted"] == [3, 3]
    assert not TIMES & set(chunks[-1]["metrics"])
    assert all("metrics" not in chunk for chunk in stream(detailed, max_tokens=9))


def test_a_stop_string_hides_nothing(detailed: httpx2.Client, strict: httpx2.Client) -> None:
    assert chat(detailed, stop="h")["metrics"]["speculative_decoding"]["num_spec_steps"] == 2
    assert chat(strict, stop="h")["metrics"] is None


def test_each_of_several_answers_has_its_own(
    detailed: httpx2.Client, strict: httpx2.Client
) -> None:
    fields = {"n": 2, "temperature": 0.01, "seed": 1, "max_tokens": 5}
    for ask in (chat, complete):
        body = ask(detailed, **fields)
        assert body["metrics"] is None
        for choice in body["choices"]:
            assert choice["metrics"]["speculative_decoding"]["num_spec_steps"] == 1
        body = ask(strict, **fields)
        assert body["metrics"] is None
        assert all("metrics" not in choice for choice in body["choices"])


def test_a_stream_of_several_answers_has_each_ones_on_its_last_piece(
    detailed: httpx2.Client,
) -> None:
    fields = {"n": 2, "temperature": 0.01, "seed": 1, "max_tokens": 5}
    told = [
        choice["metrics"]["speculative_decoding"]["num_spec_steps"]
        for chunk in stream(detailed, COMPLETIONS, **fields)
        for choice in chunk["choices"]
        if choice["finish_reason"] is not None
    ]
    assert told == [1, 1]


def test_strictly_vllms_fields_and_no_more(strict: httpx2.Client) -> None:
    told = chat(strict, max_tokens=9)["metrics"]["speculative_decoding"]
    assert set(told) == VLLM
    none = chat(strict, max_tokens=1)["metrics"]["speculative_decoding"]
    assert none["per_step_accepted"] is None
    assert none["acceptance_histogram"] == [0, 0, 0, 0]


def test_a_summary_has_no_steps(tokenizer: Tokenizer) -> None:
    with speculating(tokenizer, ResponseMetrics(spec_decode="summary")) as client:
        told = chat(client, max_tokens=9)["metrics"]["speculative_decoding"]
        assert told["per_step_accepted"] is None
        assert told["num_spec_steps"] == 2


def test_without_the_flags_nothing_is_told(tokenizer: Tokenizer) -> None:
    with speculating(tokenizer, ResponseMetrics()) as client:
        assert chat(client, max_tokens=9)["metrics"] is None


def test_times_are_told_with_their_own_flag(tokenizer: Tokenizer) -> None:
    with speculating(tokenizer, ResponseMetrics(timing=True)) as client:
        metrics = chat(client, max_tokens=9)["metrics"]
        assert metrics["speculative_decoding"] is None
        assert all(metrics[name] >= 0 for name in TIMES)
        assert chat(client, max_tokens=1)["metrics"]["mean_itl_ms"] is None
        chunks = stream(client, max_tokens=9, stream_options={"include_usage": True})
        assert set(chunks[-1]["metrics"]) == TIMES


def test_usage_is_told_at_the_end_or_all_along(detailed: httpx2.Client) -> None:
    chunks = stream(detailed, max_tokens=9, stream_options={"include_usage": True})
    assert all("usage" not in chunk for chunk in chunks[:-1])
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 9
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = stream(detailed, max_tokens=9, stream_options=options)
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
    # Steps give 1, 4 and 4 tokens; those that nobody has read yet come together.
    assert counts == sorted(counts)
    assert (counts[0], *counts[-2:]) == (0, 9, 9)
