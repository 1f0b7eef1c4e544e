"""Clients that send what is no request, or never the whole of one, or take nothing."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.server.asking import CHAT, COMPLETIONS, message
from tests.server.serving import NAME, AlphabetModel, Running, api_over, running

from outrider.engine.tokenizer import Tokenizer
from outrider.server.api.settings import ApiSettings
from outrider.server.connection import HEAD_BYTES

PATIENCE_S = 30
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n"
POST = f"POST {COMPLETIONS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()


def connect(server: Running) -> socket.socket:
    host, _, port = server.url.partition("//")[2].partition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE_S)


def reply(connection: socket.socket) -> tuple[int, bytes]:
    """The status and body of an answer after which the server closes."""
    received = b""
    while piece := connection.recv(65536):
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def error_of(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    status, body = reply(connection)
    error: dict[str, Any] = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == status
    return status, error


def until(condition: Callable[[], bool]) -> None:
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < PATIENCE_S, "it never came"
        time.sleep(0.005)


@pytest.fixture(scope="module")
def patient(tokenizer: Tokenizer) -> Iterator[Running]:
    with running(api_over(AlphabetModel(), tokenizer)) as server:
        yield server


@pytest.fixture(scope="module")
def impatient(tokenizer: Tokenizer) -> Iterator[Running]:
    with running(api_over(AlphabetModel(), tokenizer), patience_s=0.05) as server:
        yield server


@pytest.mark.parametrize(
    "nonsense", [b"\x16\x03\x01\x02\x00\x01", b"FOO / HTTP/1.1\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
)
def test_what_is_no_http_is_told_so_in_the_shape_of_all_errors(
    patient: Running, nonsense: bytes
) -> None:
    with connect(patient) as connection:
        connection.sendall(nonsense)
        assert error_of(connection)[0] == 400


@pytest.mark.parametrize(
    "beginning",
    [
        HEALTH + b"X: ",
        POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ",
        POST + b"Content-Length: 2\r\nX: ",
    ],
)
def test_headers_and_trailers_without_end_are_not_held(patient: Running, beginning: bytes) -> None:
    with connect(patient) as connection:
        connection.sendall(beginning + b"a" * (HEAD_BYTES - len(beginning)))
        connection.sendall(b"a")
        assert error_of(connection)[0] == 431


def test_a_body_in_the_smallest_chunks_is_read(patient: Running) -> None:
    body = json.dumps({"prompt": "ab" * 40_000}).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % each for each in body) + b"0\r\n\r\n"
    with connect(patient) as connection:
        connection.sendall(POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.sendall(chunks)
        status, error = error_of(connection)
        assert (status, error["param"]) == (400, "input_tokens")


@pytest.mark.parametrize(
    "part", [b"GET", HEALTH, POST + b"Content-Length: 9\r\n\r\n{", POST + b"Content-Length: 9\r\n"]
)
def test_a_request_that_never_comes_whole_is_given_up(impatient: Running, part: bytes) -> None:
    with connect(impatient) as connection:
        connection.sendall(part)
        assert error_of(connection)[0] == 408
    until(lambda: not impatient.server.server_state.connections)


@pytest.mark.parametrize(("waiting", "status"), [(16, 200), (17, 400)])
def test_only_a_few_requests_may_wait_behind_another(
    tokenizer: Tokenizer, waiting: int, status: int
) -> None:
    model = AlphabetModel()
    with running(api_over(model, tokenizer)) as server, connect(server) as connection:
        model.gate.clear()
        body = json.dumps({"prompt": "ab", "max_tokens": 3}).encode()
        connection.sendall(POST + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        until(lambda: server.api.service.answers == 1)
        last = HEALTH + b"Connection: close\r\n\r\n"
        connection.sendall((HEALTH + b"\r\n") * (waiting - 1) + last)
        until(lambda: status == 200 or not server.server.server_state.connections)
        model.gate.set()
        assert reply(connection)[0] == status


def test_a_client_that_says_nothing_is_let_go(impatient: Running) -> None:
    with connect(impatient) as connection:
        assert connection.recv(1) == b""


def test_an_answer_may_take_longer_than_a_client(tokenizer: Tokenizer) -> None:
    model = AlphabetModel()
    with running(api_over(model, tokenizer), patience_s=0.05) as server:
        model.gate.clear()
        body = json.dumps({"messages": message(), "max_tokens": 3, "temperature": 0}).encode()
        with connect(server) as idle, connect(server) as asking:
            asking.sendall(
                f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            until(lambda: server.api.service.answers == 1)
            assert idle.recv(1) == b""  # by then the other would have been given up too
            model.gate.set()
            status, content = reply(asking)
        assert status == 200
        assert json.loads(content)["choices"][0]["message"]["content"] == "abc"


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_that_nobody_reads_is_not_kept(tokenizer: Tokenizer, *, stream: bool) -> None:
    settings = ApiSettings(model_names=(NAME,), stalled_s=0.05)
    api = api_over(AlphabetModel(), tokenizer, settings=settings)
    body = json.dumps(
        {"prompt": "x", "max_tokens": 900, "temperature": 1, "n": 16, "logprobs": 20,
         "stream": stream}
    ).encode()  # fmt: skip
    with running(api, patience_s=0.05) as server, connect(server) as connection:
        connection.sendall(POST + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        until(lambda: server.api.service.answers == 16)
        until(lambda: not server.server.server_state.connections)
