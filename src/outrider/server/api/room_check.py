"""Requests for answers that there is no room for, refused before anything of them is read."""

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from outrider.server.api.errors import ApiError
from outrider.server.service.refusals import EngineDown, QueueFull, Refusal
from outrider.server.service.service import Service

ANSWERING = frozenset({"/v1/chat/completions", "/v1/completions"})


class RoomCheck:
    """Lets requests pass while `service` has room for one more answer.

    Reading a request costs ten times what refusing it does, and whoever is refused comes again: a
    crowd of them would take the time of those who are answered.
    """

    def __init__(self, app: ASGIApp, service: Service, retry_after_s: int) -> None:
        self._app = app
        self._service = service
        self._retry_after_s = retry_after_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 429, 503 or 500, or let the request pass."""
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in ANSWERING:
            try:
                self._service.check_room(1)
            except Refusal as refusal:
                await refusal_response(refusal, self._retry_after_s)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def refusal_response(refusal: Refusal, retry_after_s: int) -> Response:
    """Return what a client is told of `refusal`."""
    if isinstance(refusal, QueueFull):
        status, headers = 429, {"Retry-After": str(retry_after_s)}
    else:
        status, headers = 500 if isinstance(refusal, EngineDown) else 503, {}
    return JSONResponse(ApiError(status, str(refusal)).body, status, headers)
