"""Requests as tests write them, and streams as tests read them."""

import json
from typing import Any

import httpx2

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"


def message(text: str = "hi") -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def chat(client: httpx2.Client, **fields: Any) -> dict[str, Any]:
    """The body of a chat that succeeds; greedy unless told otherwise."""
    return ok(client, CHAT, {"messages": message(), "temperature": 0, "max_tokens": 8} | fields)


def complete(client: httpx2.Client, **fields: Any) -> dict[str, Any]:
    """The body of a completion that succeeds; greedy unless told otherwise."""
    return ok(client, COMPLETIONS, {"prompt": "ab", "temperature": 0, "max_tokens": 8} | fields)


def ok(client: httpx2.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def stream(client: httpx2.Client, path: str = CHAT, **fields: Any) -> list[dict[str, Any]]:
    """The chunks of a stream, without the mark at its end, which has to be there."""
    body = {"temperature": 0, "max_tokens": 8, "stream": True} | fields
    if path == CHAT:
        body.setdefault("messages", message())
    else:
        body.setdefault("prompt", "ab")
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    return chunks_of(response.text)


def chunks_of(text: str) -> list[dict[str, Any]]:
    *events, last, rest = text.split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


def text_of(chunks: list[dict[str, Any]], index: int = 0) -> str:
    """What the chunks of one answer say together."""
    choices = [each for chunk in chunks for each in chunk["choices"] if each["index"] == index]
    return "".join(
        each.get("text") or each.get("delta", {}).get("content") or "" for each in choices
    )


def refusal(client: httpx2.Client, path: str, body: Any, status: int = 400) -> dict[str, Any]:
    """The error that a request is refused with, in OpenAI's shape."""
    response = client.post(path, json=body)
    assert response.status_code == status, response.text
    error: dict[str, Any] = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == status
    return error
