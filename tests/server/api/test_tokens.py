import threading

import httpx2
import pytest
from tests.server.asking import complete, message, ok, refusal
from tests.server.serving import AlphabetModel, api_over, running

from outrider.engine.tokenizer import Tokenizer


def test_text_becomes_tokens_and_text_again(client: httpx2.Client) -> None:
    body = ok(client, "/tokenize", {"prompt": "abé", "return_token_strs": True})
    assert body["tokens"][:2] == [64, 65]
    assert body["count"] == 4
    assert body["max_model_len"] == 1_000
    assert body["token_strs"][:2] == ["a", "b"]
    assert ok(client, "/detokenize", {"tokens": body["tokens"]}) == {"prompt": "abé"}


def test_a_conversation_has_the_tokens_that_the_model_would_read(client: httpx2.Client) -> None:
    told = ok(client, "/tokenize", {"messages": message("hi")})
    answer = ok(
        client,
        "/v1/chat/completions",
        {"messages": message("hi"), "max_tokens": 1, "return_token_ids": True},
    )
    assert told["tokens"] == answer["prompt_token_ids"]


def test_a_completion_counts_the_tokens_that_are_told(client: httpx2.Client) -> None:
    told = ok(client, "/tokenize", {"prompt": "some text"})
    assert complete(client, prompt="some text")["usage"]["prompt_tokens"] == told["count"]


@pytest.mark.parametrize("body", [{}, {"prompt": "a", "messages": message()}])
def test_either_a_text_or_a_conversation_is_asked_about(
    client: httpx2.Client, body: dict[str, object]
) -> None:
    assert refusal(client, "/tokenize", body)["param"] == "prompt"


def test_tokens_that_there_are_not_have_no_text(client: httpx2.Client) -> None:
    assert refusal(client, "/detokenize", {"tokens": [258]})["param"] == "tokens"
    assert refusal(client, "/detokenize", {"tokens": [-1]})["param"] == "tokens[0]"


@pytest.mark.parametrize(
    ("path", "body"),
    [("/tokenize", {"prompt": "a", "return_token_strs": True}), ("/detokenize", {"tokens": [64]})],
)
def test_neither_the_event_loop_nor_a_prompt_waits_for_a_text(
    tokenizer: Tokenizer, path: str, body: dict[str, object]
) -> None:
    threads: set[str] = set()

    class Watched:
        """A tokenizer that knows who asked."""

        def __getattr__(self, name: str) -> object:
            threads.add(threading.current_thread().name.partition("_")[0])
            return getattr(tokenizer, name)

    api = api_over(AlphabetModel(), tokenizer)
    api.model.tokenizer = Watched()  # type: ignore[assignment]
    with running(api) as server, httpx2.Client(base_url=server.url, timeout=60) as client:
        ok(client, path, body)
    assert threads == {"counter"}
