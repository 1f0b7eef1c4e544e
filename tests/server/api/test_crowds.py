"""Readers who go, readers who do not read, and more of them than there is room for."""

import asyncio
import json
import socket
import time
from collections.abc import Callable
from threading import Event
from typing import Any

import httpx2
import pytest
from tests.server.asking import CHAT, chat, message
from tests.server.serving import NAME, AlphabetModel, Running, api_over, running

from outrider.engine.scheduling.limits import Limits
from outrider.engine.tokenizer import Tokenizer
from outrider.server.api.settings import ApiSettings

PATIENCE_S = 30


def until(condition: Callable[[], bool]) -> None:
    """Wait for what has to come."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < PATIENCE_S, "it never came"
        time.sleep(0.005)


def raw(server: Running, body: dict[str, object]) -> socket.socket:
    """A connection that has sent a request and read nothing."""
    content = json.dumps(body).encode()
    _, _, address = server.url.partition("//")
    host, _, port = address.partition(":")
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    connection.sendall(
        f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n".encode()
        + content
    )
    return connection


def endless(**fields: object) -> dict[str, object]:
    return {"messages": message("x" * 100), "temperature": 0, "max_tokens": 800} | fields


def test_two_hundred_clients_that_go_midway_leave_nothing_behind(tokenizer: Tokenizer) -> None:
    model = AlphabetModel()
    with running(api_over(model, tokenizer)) as server:
        model.gate.clear()
        connections = [
            raw(server, endless(stream=place % 4 != 0, n=1 + place % 2, temperature=1))
            for place in range(200)
        ]
        until(lambda: server.api.service.answers == 300)
        model.gate.set()
        for connection in connections[1::4]:
            assert connection.recv(1_000).startswith(b"HTTP/1.1 200")
        for connection in connections:
            connection.close()
        until(lambda: server.api.service.answers == 0 and not server.engine.busy)
        assert server.blocks_in_use() == 0
        assert server.api.service.metrics._requests == {}
        with httpx2.Client(base_url=server.url) as client:
            assert chat(client, max_tokens=3)["choices"][0]["message"]["content"] == "abc"


def test_a_reader_who_reads_nothing_stalls_nobody(tokenizer: Tokenizer) -> None:
    with running(api_over(AlphabetModel(), tokenizer)) as server:
        # Nearly a megabyte of chunks: more than sockets hold.
        body = endless(stream=True, logprobs=True, top_logprobs=20)
        connections = [raw(server, body) for _ in range(8)]
        with httpx2.Client(base_url=server.url, timeout=PATIENCE_S) as client:
            assert chat(client, max_tokens=3)["choices"][0]["message"]["content"] == "abc"
        # Its blocks are free when the engine is done, whether it has read or not.
        until(lambda: server.api.service.answers == 0)
        assert server.blocks_in_use() == 0
        for connection in connections:
            connection.close()


def test_a_full_queue_says_so_at_once_while_those_admitted_finish(tokenizer: Tokenizer) -> None:
    model = AlphabetModel()
    api = api_over(model, tokenizer, limits=Limits(max_num_seqs=4), capacity=10)
    with running(api) as server:
        model.gate.clear()

        async def crowd() -> list[httpx2.Response]:
            async with httpx2.AsyncClient(base_url=server.url, timeout=PATIENCE_S) as client:
                body = endless(max_tokens=20)
                asked = [asyncio.create_task(client.post(CHAT, json=body)) for _ in range(40)]
                while sum(task.done() for task in asked) < 30:
                    await asyncio.sleep(0.005)
                assert server.api.service.answers == 10
                model.gate.set()
                return [await task for task in asked]

        responses = asyncio.run(crowd())
        refused = [each for each in responses if each.status_code == 429]
        admitted = [each for each in responses if each.status_code == 200]
        assert (len(refused), len(admitted)) == (30, 10)
        assert all(each.headers["retry-after"] == "1" for each in refused)
        assert all(each.json()["error"]["type"] == "RateLimitError" for each in refused)
        texts = {each.json()["choices"][0]["message"]["content"] for each in admitted}
        assert texts == {"abcdefghijklmnopqrst"}


@pytest.mark.parametrize("path", [CHAT, "/v1/completions"])
def test_what_there_is_no_room_for_is_not_read(tokenizer: Tokenizer, path: str) -> None:
    with running(api_over(AlphabetModel(), tokenizer, capacity=1)) as server:
        place = server.api.service.reserve(1)
        with httpx2.Client(base_url=server.url) as client:
            response = client.post(path, content=b"no JSON", headers={"content-type": "x"})
            assert (response.status_code, response.headers["retry-after"]) == (429, "1")
            place.close()
            assert client.post(path, content=b"no JSON").status_code == 400


def test_more_answers_than_there_is_room_for_can_never_be_given(tokenizer: Tokenizer) -> None:
    with (
        running(api_over(AlphabetModel(), tokenizer, capacity=3)) as server,
        httpx2.Client(base_url=server.url) as client,
    ):
        response = client.post(CHAT, json={"messages": message(), "n": 4})
        assert response.status_code == 400
        assert response.json()["error"]["param"] == "n"


def test_long_prompts_are_not_read_on_the_event_loop(tokenizer: Tokenizer) -> None:
    reading, go_on = Event(), Event()
    encode = tokenizer.encode

    class Slow:
        """A tokenizer that takes as long as it is let."""

        def __getattr__(self, name: str) -> object:
            return getattr(tokenizer, name)

        def encode(self, text: str, **options: Any) -> list[int]:
            reading.set()
            assert go_on.wait(PATIENCE_S)
            return encode(text, **options)

    api = api_over(AlphabetModel(), tokenizer)
    api.model.tokenizer = Slow()  # type: ignore[assignment]
    with running(api) as server, raw(server, endless()) as connection:
        content = json.dumps({"prompt": "x"}).encode()
        with socket.create_connection(connection.getpeername()) as second:
            second.sendall(
                b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                + f"Content-Length: {len(content)}\r\n\r\n".encode()
                + content
            )
            assert reading.wait(PATIENCE_S)
            with httpx2.Client(base_url=server.url, timeout=PATIENCE_S) as client:
                assert client.get("/health").status_code == 200
            go_on.set()


@pytest.mark.parametrize("stream", [True, False])
def test_draining_finishes_what_runs_and_refuses_what_is_new(
    tokenizer: Tokenizer, *, stream: bool
) -> None:
    model = AlphabetModel()
    with running(api_over(model, tokenizer)) as server:
        model.gate.clear()
        with raw(server, endless(max_tokens=5, stream=stream)) as connection:
            until(lambda: server.api.service.answers == 1)
            server.end()
            until(lambda: server.api.service.draining)
            with httpx2.Client(base_url=server.url) as client:
                refused = client.post(CHAT, json=endless())
                assert refused.status_code == 503
                assert refused.json()["error"]["type"] == "ServiceUnavailableError"
                assert client.get("/health").status_code == 503
            model.gate.set()
            received = b""
            while piece := connection.recv(65536):
                received += piece
        assert b'"finish_reason":"length"' in received
        server.thread.join(PATIENCE_S)
        assert not server.thread.is_alive()


def test_what_does_not_finish_in_time_is_told_so(tokenizer: Tokenizer) -> None:
    model = AlphabetModel()
    with running(api_over(model, tokenizer), drain_timeout_s=0.05) as server:
        model.gate.clear()
        with raw(server, endless()) as connection:
            until(lambda: server.api.service.answers == 1)
            server.end()
            received = connection.recv(65536)
            model.gate.set()
        assert received.startswith(b"HTTP/1.1 503")
        server.thread.join(PATIENCE_S)
        assert not server.thread.is_alive()
        assert server.blocks_in_use() == 0 or not server.engine.busy


def test_who_is_cut_off_by_a_second_signal_is_told_so(tokenizer: Tokenizer) -> None:
    model = AlphabetModel()
    with running(api_over(model, tokenizer)) as server:
        model.gate.clear()
        with raw(server, endless()) as whole, raw(server, endless(stream=True)) as stream:
            until(lambda: server.api.service.answers == 2)
            received = [b"", stream.recv(1)]  # which has begun then
            server.end()
            server.end()
            for place, connection in enumerate((whole, stream)):
                while piece := connection.recv(65536):
                    received[place] += piece
            model.gate.set()
        assert received[0].startswith(b"HTTP/1.1 503")
        assert b'"code":503' in received[1]
        assert b"data: [DONE]" in received[1]
        server.thread.join(PATIENCE_S)
        assert not server.thread.is_alive()


def test_a_stalled_reader_is_given_up(tokenizer: Tokenizer) -> None:
    settings = ApiSettings(model_names=(NAME,), stalled_s=0.05)
    with (
        running(api_over(AlphabetModel(), tokenizer, settings=settings)) as server,
        raw(server, endless(stream=True, logprobs=True, top_logprobs=20)),
    ):
        until(lambda: server.api.service.answers == 0)
        until(lambda: len(server.server.server_state.tasks) == 0)


def test_no_event_of_a_stream_comes_before_its_first_token(tokenizer: Tokenizer) -> None:
    model = AlphabetModel()
    with running(api_over(model, tokenizer)) as server:
        model.gate.clear()
        with raw(server, endless(stream=True, max_tokens=2)) as connection:
            until(lambda: server.engine.busy)
            seen = connection.recv(10_000)  # the headers
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):
                seen += connection.recv(10_000)
            assert seen.startswith(b"HTTP/1.1 200")
            assert b"data:" not in seen
            model.gate.set()
            connection.settimeout(PATIENCE_S)
            while b"[DONE]" not in seen:
                seen += connection.recv(10_000)
        first, second = seen.split(b"data: ")[1:3]
        assert b'"role":"assistant"' in first
        assert b'"content":"a' in second  # with what came since, where the machine is busy
