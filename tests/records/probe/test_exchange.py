"""One server is asked, within a limit."""

from collections.abc import Callable, Iterator
from itertools import count

import httpx2
import pytest

from outrider.records.probe.exchange import Exchange, Reply


def exchange(
    answer: Callable[[httpx2.Request], httpx2.Response], *, root: str = "http://a", **options: float
) -> Exchange:
    seconds = count(0.0, options.get("step_s", 0.0))
    return Exchange(
        root,
        httpx2.Client(transport=httpx2.MockTransport(answer)),
        api_key="sk-k",
        timeout_s=options.get("timeout_s", 10.0),
        clock=lambda: next(seconds),
    )


class Trickle(httpx2.SyncByteStream):
    def __iter__(self) -> Iterator[bytes]:
        for _ in range(100):
            yield b"x"


def test_a_server_that_trickles_is_given_up_after_the_limit() -> None:
    asked = exchange(lambda _: httpx2.Response(200, stream=Trickle()), step_s=1.0)
    reply = asked.get("/v1/models")
    assert (reply.status, reply.failure) == (None, "no complete answer within 10 s")


def test_one_that_is_quicker_is_read_to_the_end() -> None:
    asked = exchange(lambda _: httpx2.Response(200, stream=Trickle()), step_s=0.01)
    assert asked.get("/v1/models").body == b"x" * 100


def test_the_key_is_a_bearer_token_and_can_be_left_out() -> None:
    sent = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.headers.get("Authorization"))
        return httpx2.Response(200)

    asked = exchange(answer)
    asked.get("/metrics", with_key=False)
    asked.get("/metrics")
    asked.post("/v1/completions", {})
    assert sent == [None, "Bearer sk-k", "Bearer sk-k"]


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(400, b'{"error": {"message": "no\\nsuch field"}}'), "status 400: no such field"),
        (Reply(400, b'{"message": "no", "object": "error"}'), "status 400: no"),
        (Reply(404, b'{"detail": "Not Found"}'), "status 404: Not Found"),
        (Reply(401, b'{"error": "key sk-k is wrong"}'), "status 401: key *** is wrong"),
        (Reply(502, b"<html><body>Bad Gateway</body></html>"), "status 502, a web page"),
        (Reply(500, b"oops"), "status 500"),
        (Reply(422, b'{"detail": [{"loc": ["body"]}]}'), "status 422"),
        (Reply(None, failure="refused sk-k"), "refused ***"),
    ],
)
def test_a_failure_is_told_in_the_words_of_the_server(reply: Reply, told: str) -> None:
    assert exchange(lambda _: httpx2.Response(200)).told(reply) == told


def test_a_long_message_is_cut() -> None:
    reply = Reply(400, b'{"message": "' + b"x" * 1000 + b'"}')
    assert len(exchange(lambda _: httpx2.Response(200)).told(reply)) < 140


def test_a_password_in_the_address_is_not_shown() -> None:
    asked = exchange(lambda _: httpx2.Response(200), root="http://me:secret@host:8000")
    assert asked.shown == "http://host:8000"
