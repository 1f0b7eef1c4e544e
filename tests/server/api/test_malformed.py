"""Bodies that nobody should send. None may be answered with a 5xx, and the server goes on."""

import gc
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.asking import CHAT, COMPLETIONS, chat, message
from tests.server.serving import NAME, AlphabetModel, Running, api_over, running

from outrider.engine.tokenizer import Tokenizer
from outrider.server.api.requests.chat import ChatRequest
from outrider.server.api.requests.completion import CompletionRequest
from outrider.server.api.settings import ApiSettings, RequestLimits

FIELDS = sorted(
    {*ChatRequest.model_fields, *CompletionRequest.model_fields, *ChatRequest.not_supported,
     "tokens", "return_token_strs", "unknown"}
)  # fmt: skip

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-3, 300), st.floats(), st.text(max_size=9),
    st.sampled_from(["", "a", "user", "text", "\x00", "\ud800", "é", "{{ x }}", 1e308]),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5) | st.just("type"), inner,
                                                     max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip
plausible: dict[str, st.SearchStrategy[Any]] = {
    "messages": st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "system", ""]), "content": values},
            optional={"tool_calls": values, "name": values},
        ),
        max_size=3,
    ),
    "prompt": st.text(max_size=9) | st.lists(st.integers(0, 257), max_size=5) | values,
    "temperature": st.floats(0, 2),
    "top_p": st.floats(0, 1),
    "n": st.integers(0, 4),
    "max_tokens": st.integers(-1, 20),
    "logit_bias": st.dictionaries(st.integers(0, 300).map(str), st.floats(-100, 100), max_size=4),
    "repetition_penalty": st.floats(1e-300, 1e300),
    "stop": st.lists(st.text(max_size=2), max_size=3),
    "allowed_token_ids": st.lists(st.integers(0, 257), max_size=3),
    "bad_words": st.lists(st.text(max_size=2), max_size=3),
    "stream": st.booleans(),
    "logprobs": st.integers(0, 5) | st.booleans(),
    "top_logprobs": st.integers(0, 5),
    "prompt_logprobs": st.integers(0, 3),
    "echo": st.booleans(),
    "min_tokens": st.integers(0, 4),
    "tokens": st.lists(st.integers(-1, 260), max_size=5),
    "tools": st.lists(values, max_size=2),
    "model": st.just(NAME) | st.none(),
    "response_format": st.fixed_dictionaries({"type": st.sampled_from(["text", "json_schema"])}),
}


REQUIRED: dict[str, dict[str, Any]] = {
    CHAT: {"messages": message(), "max_tokens": 3},
    COMPLETIONS: {"prompt": "ab", "max_tokens": 3},
    "/tokenize": {"prompt": "ab"},
    "/detokenize": {"tokens": [1]},
}


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, bytes]:
    """A path, and JSON of known fields with likely and unlikely values, sometimes damaged."""
    path = draw(st.sampled_from([CHAT, COMPLETIONS, *REQUIRED]))
    body = dict(REQUIRED[path]) if draw(st.integers(0, 9)) else {}
    for name in draw(st.lists(st.sampled_from(FIELDS), max_size=5, unique=True)):
        wild = name not in plausible or draw(st.integers(0, 5)) == 0
        if not wild or draw(st.booleans()):
            body[name] = draw(values if wild else plausible[name])
    text = json.dumps(body)
    match draw(st.integers(0, 14)):
        case 0:
            return path, text[: draw(st.integers(0, len(text)))].encode()
        case 1:
            at = draw(st.integers(0, len(text)))
            return path, text[:at].encode() + draw(st.binary(max_size=3)) + text[at:].encode()
        case _:
            return path, text.encode()


@pytest.fixture(scope="module")
def target(tokenizer: Tokenizer) -> Iterator[Running]:
    limits = RequestLimits(max_tokens=20, n=4)
    api = api_over(
        AlphabetModel(max_length=200),
        tokenizer,
        settings=ApiSettings(model_names=(NAME,), limits=limits),
    )
    with running(api) as server:
        yield server


@pytest.fixture(scope="module")
def asking(target: Running) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=target.url, timeout=60) as client:
        yield client


def send(client: httpx2.Client, path: str, body: bytes) -> None:
    response = client.post(path, content=body, headers={"content-type": "application/json"})
    assert response.status_code < 500, (response.text, body)
    if response.status_code >= 400:
        error = response.json()["error"]
        assert error["code"] == response.status_code
        assert error["message"]
    elif response.headers["content-type"].startswith("text/event-stream"):
        assert response.text.endswith("data: [DONE]\n\n")
        assert '"code":5' not in response.text
    else:
        response.json()


@settings(
    max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
@given(request=requests())
def test_a_few_thousand_bodies(asking: httpx2.Client, request: tuple[str, bytes]) -> None:
    send(asking, *request)


def test_afterwards_the_server_is_as_before(target: Running, asking: httpx2.Client) -> None:
    assert chat(asking, max_tokens=3)["choices"][0]["message"]["content"] == "abc"
    assert target.blocks_in_use() == 0
    assert target.api.service.answers == 0


@pytest.mark.slow
@pytest.mark.timeout(3_000)
def test_fifty_thousand_bodies_leave_no_memory_behind(
    target: Running, asking: httpx2.Client
) -> None:
    process = psutil.Process()
    sizes = []

    for part in range(5):

        @settings(
            max_examples=10_000,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        )
        @given(request=requests())
        def many(request: tuple[str, bytes]) -> None:
            send(asking, *request)

        many()
        gc.collect()
        sizes.append(process.memory_info().rss)
        assert target.blocks_in_use() == 0, part
    # The first parts fill caches; afterwards nothing grows by more than a few megabytes.
    assert sizes[-1] - sizes[1] < 32 * 2**20, sizes
