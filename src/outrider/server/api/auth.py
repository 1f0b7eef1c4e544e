"""Who may ask."""

import hashlib
import hmac
from collections.abc import Iterable

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from outrider.server.api.errors import ApiError

OPEN_PATHS = frozenset({"/health", "/metrics", "/version"})
"""What monitoring reads, as in vLLM without a key."""


class KeyCheck:
    """Lets only requests pass that bear one of `keys`; all of them pass where there is none.

    Keys are compared by their digests in constant time, all of them each time.
    """

    def __init__(self, app: ASGIApp, keys: Iterable[str]) -> None:
        self._app = app
        self._digests = [_digest(key.encode()) for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401, or let the request pass."""
        if scope["type"] != "http" or not self._digests or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        scheme, _, given = header.partition(b" ")
        digest = _digest(given.strip())
        matches = [hmac.compare_digest(digest, known) for known in self._digests]
        if scheme.lower() == b"bearer" and any(matches):
            await self._app(scope, receive, send)
            return
        error = ApiError(401, "no valid API key; send it as Authorization: Bearer KEY")
        response = JSONResponse(error.body, 401, {"WWW-Authenticate": "Bearer"})
        await response(scope, receive, send)


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
