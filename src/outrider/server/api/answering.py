"""From a request that was read to its response, whole or as a stream."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from functools import partial
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from outrider.server.api.answers import Answer, Answers
from outrider.server.api.api import Api
from outrider.server.api.calls import Call, begin, count_answers
from outrider.server.api.errors import ApiError, bad_request
from outrider.server.api.event_stream import DONE, EventStream, event, gone
from outrider.server.api.requests.fields import GenerationFields
from outrider.server.api.requests.not_supported import refuse_not_supported
from outrider.server.api.responses.wording import Wording
from outrider.server.service.news import End, News
from outrider.server.service.outlet import Outlet
from outrider.server.service.service import SHUT_DOWN

Result = TypeVar("Result")


async def answer(api: Api, http: Request, call: Call, wording: Wording) -> Response:
    """Have the engine answer `call`, and word what it says."""
    fields = call.fields
    api.check_model(fields.model)
    api.note_unknown(fields.unknown)
    refuse_not_supported(fields)
    _check_stream(fields)
    place = api.reserve(count_answers(call, api.settings))
    try:
        answers = await api.read(lambda: begin(call, api.model, api.settings))
        outlet = place.run([each.sequence for each in answers.each], whole=not fields.stream)
        if fields.stream:
            events = _events(outlet, answers, wording, with_usage=fields.wants_usage)
            return EventStream(events, close=place.close, stalled_s=api.settings.stalled_s)
        news = await _unless_gone(http, outlet.take())
        body = partial(_body, answers, wording, news)
        # With log-probabilities a body may take longer to word than others should wait.
        told = call.logprobs is not None or call.prompt_logprobs is not None
        content = await api.read(body) if told else body()
    except BaseException:
        place.close()
        raise
    return Response(content, media_type="application/json")


def failure_of(answer: Answer, end: End) -> ApiError:
    """Return what a client is told of an answer that the engine could not give."""
    message = end.failure or "the engine failed"
    if message == SHUT_DOWN:
        return ApiError(503, message)
    asked = answer.sequence.sampling.rules or answer.sequence.constraint is not None
    if end.counted is not None and asked:
        # The engine goes on: what the request asked of the tokens left nothing to choose from.
        return ApiError(422, f"the answer cannot be continued: {message}")
    return ApiError(500, message)


def _body(answers: Answers, wording: Wording, news: list[News]) -> bytes:
    news.sort(key=lambda each: each.answer)
    for each in news:
        told = answers.each[each.answer]
        if each.end is not None and each.end.failure is not None:
            raise failure_of(told, each.end)
        told.told(each)
    return msgspec.json.encode(wording.body(answers, news))


async def _events(
    outlet: Outlet, answers: Answers, wording: Wording, *, with_usage: bool
) -> AsyncIterator[bytes]:
    """Yield the events of a stream, those of one step together.

    Nothing comes before the first token: clients take the time to the first event for its.
    """
    openings = [chunk for each in answers.each if (chunk := wording.opening(each)) is not None]
    chunks = list(map(event, openings))
    while news := await outlet.take():
        for each in news:
            told = answers.each[each.answer]
            if each.end is not None and each.end.failure is not None:
                yield b"".join([*chunks, event(failure_of(told, each.end).body), DONE])
                return
            told.told(each)
            chunks.append(event(wording.chunk(told, each)))
        yield b"".join(chunks)
        chunks = []
    yield event(wording.closing(answers)) + DONE if with_usage else DONE


async def _unless_gone(http: Request, work: Awaitable[Result]) -> Result:
    """Return what `work` gives; ClientGone as soon as the client has gone."""
    result = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(gone(http.receive))
    try:
        await asyncio.wait([result, watch], return_when=asyncio.FIRST_COMPLETED)
        if not result.done():
            raise ClientGone
        return result.result()
    finally:
        result.cancel()
        watch.cancel()


class ClientGone(Exception):
    """Nobody is there any more to read the answer."""


def _check_stream(fields: GenerationFields) -> None:
    if fields.stream_options is not None and not fields.stream:
        raise bad_request("stream_options without stream; set stream to true", "stream_options")
    if fields.prompt_logprobs is not None and fields.stream:
        raise bad_request("prompt_logprobs are not told in a stream", "prompt_logprobs")
