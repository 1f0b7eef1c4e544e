"""A real model, tiny and random, from its folder to its answers."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import torch
from tests.server.asking import COMPLETIONS, chat, complete, stream
from tests.server.models import served_model

from outrider.engine.models.backends.torch import TorchBackend
from outrider.engine.models.base import BLOCK_TOKENS
from outrider.engine.models.registry import BACKENDS
from outrider.engine.models.source import open_weights
from outrider.engine.models.store import locate_model
from outrider.engine.scheduling.limits import Limits
from outrider.engine.tokenizer import Tokenizer
from outrider.errors import InvalidSetting, NotEnoughMemory, UnknownModel
from outrider.server.service.building import EngineSettings, build_engine
from outrider.server.serving import open_draft, read_chat_template
from outrider.server.speculation.opened_draft import ModelToPair
from outrider.server.speculation.reading import read_speculative_config
from outrider.server.speculation.resolving import resolve
from outrider.server.speculation.target_facts import TargetFacts

ENGINE = EngineSettings(
    backend="torch",
    dtype="float32",
    max_model_len=512,
    kv_cache_bytes=64 * 2**20,
    limits=Limits(max_num_seqs=8, max_num_batched_tokens=128),
)
NGRAM = '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 1}'


def served(folder: Path, speculation: str | None) -> AbstractContextManager[httpx2.Client]:
    return served_model("tiny", str(folder), folder, ENGINE, speculation)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def plain(tiny_model: Path) -> Iterator[httpx2.Client]:
    with served(tiny_model, None) as client:
        yield client


@pytest.fixture(scope="module")
def speculating(tiny_model: Path) -> Iterator[httpx2.Client]:
    with served(tiny_model, NGRAM) as client:
        yield client


@pytest.fixture(scope="module")
def with_draft_model(tiny_model: Path) -> Iterator[httpx2.Client]:
    """The model drafts for itself."""
    speculation = {"method": "draft_model", "model": str(tiny_model), "num_speculative_tokens": 3}
    with served(tiny_model, json.dumps(speculation)) as client:
        yield client


@pytest.mark.parametrize("temperature", [0, 0.9])
def test_streamed_or_not_speculating_or_not_a_seed_gives_the_same_tokens(
    plain: httpx2.Client,
    speculating: httpx2.Client,
    with_draft_model: httpx2.Client,
    temperature: float,
) -> None:
    asked = {
        "prompt": "abcabcabcabc", "temperature": temperature, "seed": 5, "max_tokens": 60,
        "return_token_ids": True, "ignore_eos": True,
    }  # fmt: skip
    outputs = []
    for client in (plain, speculating, with_draft_model):
        outputs.append(complete(client, **asked)["choices"][0]["token_ids"])
        chunks = stream(client, COMPLETIONS, **asked)
        outputs.append([id_ for each in chunks for id_ in each["choices"][0]["token_ids"]])
    assert len(outputs[0]) == 60
    assert outputs.count(outputs[0]) == 6


@pytest.mark.parametrize(
    "asked",
    [
        {"stop": ["c", "zz"], "ignore_eos": True},
        {"stop": ["abca"], "include_stop_str_in_output": True},
        {"stop_token_ids": [98, 120], "temperature": 0.8, "seed": 4},
        {"n": 3, "temperature": 0.9, "seed": 1, "min_p": 0.05, "top_k": 40},
        {"logit_bias": {"97": 3.0, "98": 2.0}, "presence_penalty": 0.5, "frequency_penalty": 0.3},
        {"repetition_penalty": 1.3, "bad_words": ["a", "bc"], "temperature": 0.7, "seed": 2},
        {"min_tokens": 9, "stop": ["a", "b", "c", "d"], "top_p": 0.9, "temperature": 1, "seed": 3},
        {"logprobs": 2, "prompt_logprobs": 1, "echo": True},
    ],
    ids=", ".join,
)
def test_whatever_a_request_asks_the_answer_is_the_same_with_speculation(
    plain: httpx2.Client,
    speculating: httpx2.Client,
    with_draft_model: httpx2.Client,
    asked: dict[str, Any],
) -> None:
    body = {"prompt": "abcabcabcabc", "max_tokens": 50, "return_token_ids": True} | asked
    first, *others = [
        complete(client, **body)["choices"] for client in (plain, speculating, with_draft_model)
    ]
    exact = ("text", "token_ids", "finish_reason", "stop_reason")
    for other in others:
        for choice, expected in zip(other, first, strict=True):
            assert {name: choice[name] for name in exact} == {
                name: expected[name] for name in exact
            }


def test_speculation_is_told_by_the_version_and_in_the_answer(speculating: httpx2.Client) -> None:
    told = speculating.get("/version").json()["speculative_config"]
    assert (told["method"], told["num_speculative_tokens"]) == ("ngram", 3)
    metrics = complete(speculating, prompt="abcabcabc", max_tokens=40)["metrics"]
    assert metrics["speculative_decoding"]["num_spec_steps"] > 0
    page = speculating.get("/metrics").text
    assert "vllm:spec_decode_num_drafts_total" in page


def test_a_model_that_drafts_for_itself_is_right(with_draft_model: httpx2.Client) -> None:
    told = with_draft_model.get("/version").json()["speculative_config"]
    assert (told["method"], told["draft_sample_method"]) == ("draft_model", "greedy")
    metrics = complete(
        with_draft_model, prompt="abc", max_tokens=41, ignore_eos=True, temperature=0
    )["metrics"]["speculative_decoding"]
    assert metrics["acceptance_histogram"][3] == metrics["num_spec_steps"] == 10


def test_the_memory_for_caches_is_shared_by_target_and_draft(tiny_model: Path) -> None:
    files = locate_model(str(tiny_model), cache_dir=tiny_model, report=print)
    speculation = read_speculative_config(
        json.dumps({"model": str(tiny_model), "num_speculative_tokens": 3})
    )
    assert speculation is not None
    resolved = resolve(speculation, TargetFacts(model="tiny"))
    side = ModelToPair("tiny", files.path, Tokenizer(files.path))
    draft = open_draft(resolved, side, tiny_model, say=print)
    small = replace(ENGINE, kv_cache_bytes=2**19, max_model_len=64)
    alone = build_engine(files, small, None, model_name="tiny")
    both = build_engine(files, small, resolved, draft=draft, model_name="tiny")
    assert (alone.cache_tokens, both.cache_tokens) == (512, 256)
    assert alone.cache_bytes == both.cache_bytes == 2**19


def test_without_a_size_caches_get_half_of_what_the_backend_has_left_beside_the_weights(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = locate_model(str(tiny_model), cache_dir=tiny_model, report=print)
    config = open_weights(files.path).config
    backend = BACKENDS["torch"]
    block_bytes = BLOCK_TOKENS * backend.kv_bytes_per_token(config, "float32")
    free_bytes = backend.weight_bytes(config, "float32") + 2 * 40 * block_bytes
    monkeypatch.setattr(TorchBackend, "free_bytes", lambda _: free_bytes)
    built = build_engine(files, replace(ENGINE, kv_cache_bytes=None), None, model_name="tiny")
    assert built.cache_tokens == 40 * BLOCK_TOKENS


def test_a_draft_model_that_is_not_there_is_told_as_the_draft_model(tiny_model: Path) -> None:
    speculation = read_speculative_config('{"model": "./nowhere", "num_speculative_tokens": 3}')
    assert speculation is not None
    resolved = resolve(speculation, TargetFacts(model="tiny"))
    side = ModelToPair("tiny", tiny_model, Tokenizer(tiny_model))
    told = r"^the draft model '\./nowhere' does not exist; expected"
    with pytest.raises(UnknownModel, match=told):
        open_draft(resolved, side, tiny_model, say=print)


def test_text_is_never_half_a_character(plain: httpx2.Client) -> None:
    asked = {"prompt": "é", "temperature": 1, "seed": 3, "max_tokens": 200, "ignore_eos": True}
    whole = complete(plain, **asked)["choices"][0]["text"]
    pieces = [chunk["choices"][0]["text"] for chunk in stream(plain, COMPLETIONS, **asked)]
    assert "".join(pieces) == whole


def test_many_requests_at_once_are_answered_as_each_alone(plain: httpx2.Client) -> None:
    prompts = [f"{letter}{letter}x" for letter in "abcdefghij"]
    together = complete(plain, prompt=prompts, max_tokens=12, return_token_ids=True)
    for prompt, choice in zip(prompts, together["choices"], strict=True):
        alone = complete(plain, prompt=prompt, max_tokens=12, return_token_ids=True)
        assert alone["choices"][0]["token_ids"] == choice["token_ids"]


def test_the_chat_template_may_be_the_users_own(tiny_model: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer(tiny_model)
    template = "{% for message in messages %}{{ message.content }}!{% endfor %}"
    file = tmp_path / "template.jinja"
    file.write_text(template)
    assert read_chat_template(str(file), tokenizer) == template
    assert read_chat_template(template, tokenizer) == template
    assert read_chat_template(None, tokenizer) is None
    for broken in (str(tmp_path / "missing.jinja"), "{% for %}", "{{ messages.nothing.here }}"):
        with pytest.raises(InvalidSetting, match="--chat-template"):
            read_chat_template(broken, tokenizer)


def test_what_does_not_fit_is_told_before_it_is_loaded(tiny_model: Path) -> None:
    files = locate_model(str(tiny_model), cache_dir=tiny_model, report=print)
    small = EngineSettings(backend="torch", dtype="float32", kv_cache_bytes=1_000)
    with pytest.raises(NotEnoughMemory, match="--kv-cache-memory"):
        build_engine(files, small, None, model_name="tiny")
    long = EngineSettings(backend="torch", dtype="float32", max_model_len=4_097)
    with pytest.raises(InvalidSetting, match="--max-model-len 4097"):
        build_engine(files, long, None, model_name="tiny")


def test_a_chat_goes_through_the_models_template(plain: httpx2.Client) -> None:
    body = chat(plain, return_token_ids=True, max_tokens=2)
    assert body["prompt_token_ids"][0] == 257
