"""Conversations."""

from fastapi import APIRouter, Request, Response

from outrider.server.api.answering import answer
from outrider.server.api.api import Api, api_of
from outrider.server.api.calls import ChatCall
from outrider.server.api.errors import bad_request
from outrider.server.api.json_route import JsonRoute
from outrider.server.api.requests.chat import ChatRequest
from outrider.server.api.responses.chat import ChatWording
from outrider.server.api.responses.identity import Identity
from outrider.server.api.responses.logprobs import LogprobsWording
from outrider.server.api.routes import ANSWERS

router = APIRouter(route_class=JsonRoute)


@router.post("/v1/chat/completions", response_class=Response, responses=ANSWERS)
async def chat_completions(fields: ChatRequest, request: Request) -> Response:
    """Go on with a conversation."""
    api = api_of(request)
    _check_choices(fields)
    return await answer(api, request, ChatCall(fields), wording(api, fields))


def wording(api: Api, fields: ChatRequest) -> ChatWording:
    """Return how the answers to `fields` are worded."""
    return ChatWording(
        fields,
        Identity.fresh("chatcmpl", api.settings.model_names[0], api.fingerprint),
        LogprobsWording(api.model, as_ids=bool(fields.return_tokens_as_token_ids)),
        api.settings.metrics,
        answers=fields.n or 1,
    )


def _check_choices(fields: ChatRequest) -> None:
    if fields.tool_choice not in (None, "none", "auto"):
        raise bad_request(
            "tool_choice other than none and auto is not supported; the model's own text is"
            " returned as it is",
            "tool_choice",
        )
    if fields.modalities and fields.modalities != ["text"]:
        raise bad_request("modalities other than text are not supported", "modalities")
