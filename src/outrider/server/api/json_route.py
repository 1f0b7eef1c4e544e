"""Bodies read as JSON, and nothing but JSON."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.exceptions import HTTPException


class JsonRequest(Request):
    """Its body is UTF-8 and has no half of a surrogate pair, which could not be written again.

    Python's own reader lets both pass.
    """

    async def json(self) -> Any:
        """Return the body; HTTPException, 400, for one that is no JSON."""
        try:
            return from_json(await self.body())
        except ValueError as error:
            raise HTTPException(400, f"the body is not JSON ({error})") from error


class JsonRoute(APIRoute):
    """Hands its function a `JsonRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """See `APIRoute`."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(JsonRequest(request.scope, request.receive))

        return strictly
