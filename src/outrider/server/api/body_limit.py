"""Bodies no larger than they may be."""

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outrider.server.api.errors import ApiError


class BodyLimit:
    """Refuses bodies of more than `most_bytes`, by their announced length or while they come."""

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 413, or let the request pass."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdecimal() and int(announced[:20]) > self._most_bytes:
            await JSONResponse(self._error.body, 413)(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._most_bytes:
                raise HTTPException(413, self._error.message)
            return message

        await self._app(scope, counted, send)

    @property
    def _error(self) -> ApiError:
        return ApiError(413, f"a body of more than {self._most_bytes} bytes; send a smaller one")
