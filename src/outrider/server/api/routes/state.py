"""How the server is."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from outrider.server.api.api import api_of
from outrider.server.api.errors import ApiError

router = APIRouter()


@router.get("/health", response_class=Response)
async def health(request: Request) -> Response:
    """Answer 200 while requests are taken, 503 while the server ends or its engine is down."""
    service = api_of(request).service
    if service.failure is not None:
        raise ApiError(503, service.failure)
    if service.draining:
        raise ApiError(503, "the server is ending")
    return Response()


@router.get("/version")
async def version(request: Request) -> dict[str, Any]:
    """Tell the version, and what speculation was resolved to."""
    api = api_of(request)
    return {"version": api.version, "speculative_config": api.settings.speculation}


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Show the counters, in Prometheus' text format or as OpenMetrics."""
    page, content_type = api_of(request).service.metrics.render(request.headers.get("accept", ""))
    return Response(page, headers={"content-type": content_type})
