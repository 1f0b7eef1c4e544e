from collections.abc import Iterator

import httpx2
import pytest
from tests.server.asking import CHAT, chat, message
from tests.server.serving import NAME, AlphabetModel, api_over, running

from outrider.engine.tokenizer import Tokenizer
from outrider.server.api.settings import ApiSettings, RequestLimits


@pytest.fixture(scope="module")
def limited(tokenizer: Tokenizer) -> Iterator[httpx2.Client]:
    settings = ApiSettings(model_names=(NAME,), limits=RequestLimits(body_bytes=1_000))
    with (
        running(api_over(AlphabetModel(), tokenizer, settings=settings)) as server,
        httpx2.Client(base_url=server.url) as client,
    ):
        yield client


def test_a_body_over_the_limit_is_refused_by_its_announced_length(limited: httpx2.Client) -> None:
    response = limited.post(CHAT, json={"messages": message("x" * 1_000)})
    assert response.status_code == 413
    assert response.json()["error"]["type"] == "RequestTooLargeError"
    assert chat(limited)


def test_a_body_of_unknown_length_is_refused_while_it_comes(limited: httpx2.Client) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(40):
            yield b" " * 100

    response = limited.post(CHAT, content=endless(), headers={"content-type": "application/json"})
    assert response.status_code == 413
    assert response.json()["error"]["code"] == 413


def test_a_body_within_the_limit_passes_in_pieces(limited: httpx2.Client) -> None:
    pieces = (b'{"messages": [{"role": "user", ', b'"content": "x"}], "max_tokens": 1}')
    response = limited.post(
        CHAT, content=iter(pieces), headers={"content-type": "application/json"}
    )
    assert response.status_code == 200
