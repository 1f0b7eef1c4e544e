"""One client's connection, which ends where the client sends too much, too slowly, or reads not."""

from http import HTTPStatus
from typing import Any

import msgspec
from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from outrider.server.api.errors import ApiError

HEAD_BYTES = 65_536
"""The most that a request's line and headers may have."""
_FRAMING = 8
"""Bytes that may come for each byte of a body; one in a chunk of its own takes six."""
_PIPELINED = 16
"""Requests that may wait behind one that is answered; each takes hundreds of times its bytes."""


class Connection(HttpToolsProtocol):
    """What uvicorn leaves to whatever stands before it: limits of size and time before an answer.

    A reverse proxy would keep such clients away; without one they would hold memory and sockets
    for as long as they like. Everything here happens on the event loop.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._received = self._body_bytes = self._unsent = 0
        self._progress_s = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Take in what the client has sent, up to what a request may have."""
        self._received += len(data)
        super().data_received(data)
        if self._received > HEAD_BYTES + _FRAMING * self._body_bytes:
            self._refuse(431, f"more than {HEAD_BYTES} bytes beside the body; send fewer headers")

    def on_message_begin(self) -> None:
        """Stop reading where too many requests wait for their turn already."""
        if len(self.pipeline) >= _PIPELINED:
            raise HttpParserError("too many requests at once")
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        """Count what may come by right."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Begin to count anew."""
        self._received = self._body_bytes = 0
        self._progress_s = self.loop.time()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Tell what is no HTTP, in the shape of all errors."""
        self._refuse(400, msg.removesuffix("."))

    def end_if_stalled(self, patience_s: float) -> None:
        """Give up a client that has been awaited for longer; to be called every now and then.

        That is one that has not sent a whole request, or takes nothing of what is there for it.
        """
        unsent = self.transport.get_write_buffer_size()
        moves = unsent != self._unsent if unsent else self._answering
        self._unsent = unsent
        if moves:
            self._progress_s = self.loop.time()
        elif self.loop.time() - self._progress_s > patience_s:
            if unsent:
                self.transport.abort()
            elif self._received:
                self._refuse(408, f"no whole request within {patience_s:g} s; send it faster")
            else:
                self.transport.close()

    @property
    def _answering(self) -> bool:
        """Whether a request is there as a whole, and its answer is not."""
        cycle = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def _refuse(self, status: int, message: str) -> None:
        """Answer and close; without a word where another answer has begun."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            content = msgspec.json.encode(ApiError(status, message).body)
            head = (
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
                f"content-type: application/json\r\ncontent-length: {len(content)}\r\n"
                "connection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + content)
        self.transport.close()
