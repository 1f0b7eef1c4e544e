import logging

import httpx2
import pytest
from tests.server.asking import CHAT, chat, message
from tests.server.serving import NAME, AlphabetModel, api_over, running

from outrider.engine.tokenizer import Tokenizer
from outrider.server.api.settings import ApiSettings

KEYS = ("first-secret", "second-sécret")


@pytest.mark.parametrize("key", KEYS)
def test_any_of_the_keys_opens(tokenizer: Tokenizer, key: str) -> None:
    settings = ApiSettings(model_names=(NAME,), api_keys=KEYS)
    with (
        running(api_over(AlphabetModel(), tokenizer, settings=settings)) as server,
        httpx2.Client(
            base_url=server.url, headers=[(b"authorization", f"Bearer {key}".encode())]
        ) as client,
    ):
        assert chat(client)


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer wrong", "Basic first-secret", "first-secret",
               "Bearer first-secre", "Bearer first-secrett"],
)  # fmt: skip
def test_without_a_key_nothing_but_the_state_is_told(
    tokenizer: Tokenizer, header: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    settings = ApiSettings(model_names=(NAME,), api_keys=KEYS)
    with (
        caplog.at_level(logging.DEBUG),
        running(api_over(AlphabetModel(), tokenizer, settings=settings)) as server,
        httpx2.Client(base_url=server.url) as client,
    ):
        if header is not None:
            client.headers["authorization"] = header
        for method, path in (
            ("POST", CHAT), ("GET", "/v1/models"), ("POST", "/tokenize"), ("GET", "/openapi.json"),
            ("GET", "/nowhere"),
        ):  # fmt: skip
            body = {"messages": message()} if method == "POST" else None
            response = client.request(method, path, json=body)
            assert response.status_code == 401
            assert response.json()["error"]["type"] == "AuthenticationError"
            assert response.headers["www-authenticate"] == "Bearer"
        for path in ("/health", "/metrics", "/version"):
            assert client.get(path).status_code == 200
    assert not any(key in caplog.text for key in KEYS)


def test_settings_do_not_show_their_keys() -> None:
    assert "first-secret" not in repr(ApiSettings(model_names=(NAME,), api_keys=KEYS))
