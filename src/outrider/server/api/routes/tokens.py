"""From text to token ids and back."""

import msgspec
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from outrider.server.api.api import Api, api_of
from outrider.server.api.errors import bad_request
from outrider.server.api.json_route import JsonRoute
from outrider.server.api.prompts import chat_prompt, check_token, text_prompts
from outrider.server.api.requests.tokens import DetokenizeRequest, TokenizeRequest

router = APIRouter(route_class=JsonRoute)


@router.post("/tokenize", response_class=JSONResponse)
async def tokenize(fields: TokenizeRequest, request: Request) -> Response:
    """Tell the tokens of a text, or of a conversation as the model would read it."""
    api = api_of(request)
    api.check_model(fields.model)
    return _json(await api.read_aside(lambda: _tokenized(api, fields)))


@router.post("/detokenize", response_class=JSONResponse)
async def detokenize(fields: DetokenizeRequest, request: Request) -> Response:
    """Tell the text of some tokens, special ones included."""
    api = api_of(request)
    api.check_model(fields.model)
    return _json(await api.read_aside(lambda: _detokenized(api, fields)))


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json")


def _tokenized(api: Api, fields: TokenizeRequest) -> bytes:
    """Return the whole body, which may take seconds to word for a large text."""
    tokens = _tokens(api, fields)
    entry = api.model.tokenizer.token
    return msgspec.json.encode(
        {
            "count": len(tokens),
            "max_model_len": api.model.max_length,
            "tokens": tokens,
            "token_strs": [entry(each) for each in tokens] if fields.return_token_strs else None,
        }
    )


def _detokenized(api: Api, fields: DetokenizeRequest) -> bytes:
    for token in fields.tokens:
        check_token(token, api.model.vocabulary_tokens, "tokens")
    return msgspec.json.encode({"prompt": api.model.tokenizer.decode(fields.tokens)})


def _tokens(api: Api, fields: TokenizeRequest) -> list[int]:
    if (fields.prompt is None) == (fields.messages is None):
        raise bad_request("expected either prompt or messages", "prompt")
    if fields.messages is None:
        [tokens] = text_prompts(
            api.model.tokenizer,
            fields.prompt or "",
            add_special_tokens=fields.add_special_tokens is not False,
            vocabulary_tokens=api.model.vocabulary_tokens,
        )
        return tokens
    continues = bool(fields.continue_final_message)
    wants = fields.add_generation_prompt
    return chat_prompt(
        api.model.tokenizer,
        fields.messages,
        chat_template=api.settings.chat_template,
        tools=fields.tools,
        add_generation_prompt=not continues if wants is None else wants,
        continue_final_message=continues,
        variables=fields.chat_template_kwargs,
    )
