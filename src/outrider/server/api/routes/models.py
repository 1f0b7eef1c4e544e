"""Which model is served."""

from typing import Any

from fastapi import APIRouter, Request

from outrider.server.api.api import Api, api_of

router = APIRouter()


@router.get("/v1/models")
async def models(request: Request) -> dict[str, Any]:
    """List the names that requests may call the model by."""
    api = api_of(request)
    return {"object": "list", "data": [_card(api, name) for name in api.settings.model_names]}


@router.get("/v1/models/{name:path}")
async def model(name: str, request: Request) -> dict[str, Any]:
    """Tell of the model under one of its names."""
    api = api_of(request)
    if name not in api.settings.model_names:
        raise api.no_model(name)
    return _card(api, name)


def _card(api: Api, name: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": api.started,
        "owned_by": "outrider",
        "root": api.settings.model_names[0],
        "parent": None,
        "max_model_len": api.model.max_length,
        "permission": [],
    }
