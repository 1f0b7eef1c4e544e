"""The application: routes, and how each failure is told."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from outrider.server.api.answering import ClientGone
from outrider.server.api.api import Api, api_of
from outrider.server.api.auth import KeyCheck
from outrider.server.api.body_limit import BodyLimit
from outrider.server.api.errors import NAMES, ApiError, bad_request
from outrider.server.api.room_check import RoomCheck, refusal_response
from outrider.server.api.routes import chat, completions, models, state, tokens
from outrider.server.metrics.interval_log import IntervalLog
from outrider.server.metrics.periodic_log import keep_log
from outrider.server.service.refusals import Refusal

_log = logging.getLogger(__name__)

ROUTERS = (chat.router, completions.router, models.router, tokens.router, state.router)
_CLIENT_GONE = 499


def create_app(api: Api) -> FastAPI:
    """Return the ASGI application of `api`, whose service runs as long as it does."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        api.service.start()
        log = asyncio.create_task(_keep_log(api))
        try:
            yield
        finally:
            log.cancel()
            api.service.stop()
            api.model.readers.shutdown(wait=False)
            api.model.counter.shutdown(wait=False)

    # The pages that show the document load scripts from elsewhere.
    app = FastAPI(
        title="Outrider", version=api.version, lifespan=lifespan, docs_url=None, redoc_url=None,
        responses={status: {"description": name} for status, name in NAMES.items()},
    )  # fmt: skip
    app.state.api = api
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(ApiError, _tell)
    app.add_exception_handler(Refusal, _tell_refusal)
    app.add_exception_handler(RequestValidationError, _tell_invalid)
    app.add_exception_handler(HTTPException, _tell_http)
    app.add_exception_handler(ClientGone, _tell_nobody)
    app.add_exception_handler(Exception, _tell_unforeseen)
    app.add_middleware(RoomCheck, service=api.service, retry_after_s=api.settings.retry_after_s)
    app.add_middleware(BodyLimit, most_bytes=api.settings.limits.body_bytes)
    app.add_middleware(KeyCheck, keys=api.settings.api_keys)
    return app


async def _keep_log(api: Api) -> None:
    interval_s, clock = api.settings.log_interval_s, api.service.clock
    if interval_s is not None:
        log = IntervalLog(api.service.metrics.snapshot, now=clock(), device=api.model.device)
        await keep_log(log, interval_s=interval_s, clock=clock, logger=_log)


def _response(error: ApiError) -> Response:
    return JSONResponse(error.body, error.status, error.headers)


async def _tell(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError), "registered for it"
    return _response(error)


async def _tell_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal), "registered for it"
    return refusal_response(error, api_of(request).settings.retry_after_s)


async def _tell_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError), "registered for it"
    first = error.errors()[0]
    content_type = request.headers.get("content-type", "")
    if isinstance(error.body, bytes):  # FastAPI parses no other content type than JSON's
        told = f"Content-Type {content_type or 'is missing'}; send the body as application/json"
        return _response(bad_request(told))
    return _response(bad_request(_what_is_wrong(first), _field(first["loc"])))


def _what_is_wrong(found: dict[str, Any]) -> str:
    name = _field(found["loc"]) or "the body"
    return f"{name}: {found['msg'][:1].lower()}{found['msg'][1:]}"


def _field(place: tuple[int | str, ...]) -> str | None:
    """Return `stop[1]` of ("body", "stop", "list[str]", 1): names of types are no part of it."""
    _, *path = place
    if not path or isinstance(path[0], int):
        return None
    parts = [
        f"[{each}]" if isinstance(each, int) else f".{each}"
        for each in path
        if isinstance(each, int) or (each.isidentifier() and each not in _TYPES)
    ]
    return "".join(parts).removeprefix(".")


_TYPES = frozenset({"str", "int", "bool", "float", "dict"})


async def _tell_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "registered for it"
    return _response(ApiError(error.status_code, str(error.detail), headers=error.headers))


async def _tell_nobody(_: Request, error: Exception) -> Response:
    del error
    return Response(status_code=_CLIENT_GONE)


async def _tell_unforeseen(_: Request, error: Exception) -> Response:
    del error  # the server that runs the application logs it
    return _response(ApiError(500, "the server failed to handle the request"))
