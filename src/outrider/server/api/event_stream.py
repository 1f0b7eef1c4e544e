"""Server-sent events to a reader who may be slow, or gone."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

DONE = b"data: [DONE]\n\n"

_encode = msgspec.json.Encoder().encode


def event(body: dict[str, Any]) -> bytes:
    """Return one event."""
    return b"data: " + _encode(body) + b"\n\n"


class EventStream(Response):
    """Sends `events` as they come and calls `close` in the end, whatever happened.

    That is also when the reader goes, before the first event too, or takes nothing for `stalled_s`.
    """

    def __init__(
        self,
        events: AsyncIterator[bytes],
        *,
        close: Callable[[], None],
        stalled_s: float,
    ) -> None:
        super().__init__(media_type="text/event-stream")
        del self.headers["content-length"]
        self.headers["cache-control"] = "no-cache"
        self._events = events
        self._close = close
        self._stalled_s = stalled_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all events, unless the client goes before."""
        del scope
        tasks = [
            asyncio.create_task(self._send_all(send)),
            asyncio.create_task(gone(receive)),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            self._close()

    async def _send_all(self, send: Send) -> None:
        await self._put(
            send,
            {"type": "http.response.start", "status": 200, "headers": self.raw_headers},
        )
        try:
            async for body in self._events:
                await self._put(
                    send, {"type": "http.response.body", "body": body, "more_body": True}
                )
        except TimeoutError:
            return  # the server closes a connection whose response was not completed
        await self._put(send, {"type": "http.response.body", "body": b"", "more_body": False})

    async def _put(self, send: Send, message: Message) -> None:
        async with asyncio.timeout(self._stalled_s):
            await send(message)


async def gone(receive: Receive) -> None:
    """Return once the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
