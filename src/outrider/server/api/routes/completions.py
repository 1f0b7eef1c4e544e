"""Texts to go on with."""

from fastapi import APIRouter, Request, Response

from outrider.server.api.answering import answer
from outrider.server.api.api import api_of
from outrider.server.api.calls import CompletionCall
from outrider.server.api.json_route import JsonRoute
from outrider.server.api.requests.completion import CompletionRequest
from outrider.server.api.responses.completion import CompletionWording
from outrider.server.api.responses.identity import Identity
from outrider.server.api.responses.logprobs import LogprobsWording
from outrider.server.api.routes import ANSWERS

router = APIRouter(route_class=JsonRoute)


@router.post("/v1/completions", response_class=Response, responses=ANSWERS)
async def completions(fields: CompletionRequest, request: Request) -> Response:
    """Go on with one text or several."""
    api = api_of(request)
    call = CompletionCall(fields)
    wording = CompletionWording(
        fields,
        Identity.fresh("cmpl", api.settings.model_names[0], api.fingerprint),
        LogprobsWording(api.model, as_ids=bool(fields.return_tokens_as_token_ids)),
        api.settings.metrics,
        answers=call.prompts * (fields.n or 1),
        model=api.model,
        only_echo=call.only_echo,
    )
    return await answer(api, request, call, wording)
