"""One short request, plain and then streamed, in the first form that the server accepts."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from outrider.records.probe.answers import read_answer
from outrider.records.probe.exchange import Exchange, Reply
from outrider.records.probe.seen import Answer, Answered, Missing

PROMPT = (
    "Write this list three times, exactly as it is:\n1. red apples\n2. green pears\n3. blue plums"
)
"""An answer repeats itself, so that lookups find something and most drafters do well."""
MAX_TOKENS = 48

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
WITH_FIGURES: Mapping[str, Any] = {"return_spec_tokens_details": True}
"""What an engine wants to be asked: SGLang alone has such a field, vLLM takes no notice of it."""
WITH_USAGE: Mapping[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}

_REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
_NO_SUCH_PATH = (
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.NOT_IMPLEMENTED,
)


def prompt_field(path: str, prompt: str) -> dict[str, Any]:
    """Return the field of a request to this path that has the prompt."""
    if path == CHAT:
        return {"messages": [{"role": "user", "content": prompt}]}
    return {"prompt": prompt}


@dataclass(frozen=True, slots=True)
class Form:
    """One way to ask: at a path, with fields that ask for the figures or without."""

    path: str
    fields: Mapping[str, Any]

    def body(self, model: str | None, max_tokens: int) -> dict[str, Any]:
        """Return the request; without a model the server takes its own."""
        asked = prompt_field(self.path, PROMPT)
        named = {} if model is None else {"model": model}
        return {**named, **asked, "max_tokens": max_tokens, "temperature": 0, **self.fields}


FORMS = tuple(Form(path, fields) for path in (CHAT, COMPLETIONS) for fields in (WITH_FIGURES, {}))


@dataclass(frozen=True, slots=True)
class Answers:
    """Both answers, and how many requests they took, refused ones included."""

    plain: Answered
    streamed: Answered
    sent: int


def ask(exchange: Exchange, model: str | None, max_tokens: int) -> Answers:
    """Send the request; the streamed one only where the plain one was answered."""
    replies: list[tuple[Form, Reply]] = []
    for form in FORMS:
        earlier = [reply.status for tried, reply in replies if tried.path == form.path]
        if any(status in _NO_SUCH_PATH for status in earlier):
            continue
        reply = exchange.post(form.path, form.body(model, max_tokens))
        replies.append((form, reply))
        if reply.status not in (*_REFUSED, *_NO_SUCH_PATH):
            break
    sent = len(replies)
    if not reply.ok or reply.is_web_page:
        # After several refusals the first speaks of what was really asked for.
        form, first = replies[0] if reply.status in _NO_SUCH_PATH else (form, reply)
        failed = f"a request to {form.path} failed: {exchange.told(first)}"
        not_sent = Missing("the plain request was not answered", asked=False)
        return Answers(Missing(failed, asked=True, status=first.status), not_sent, sent)
    plain = _answer(exchange, form, reply)
    reply = exchange.post(form.path, {**form.body(model, max_tokens), **WITH_USAGE})
    if not reply.ok:
        return Answers(
            plain, Missing(exchange.told(reply), asked=True, status=reply.status), sent + 1
        )
    return Answers(plain, _answer(exchange, form, reply), sent + 1)


def _answer(exchange: Exchange, form: Form, reply: Reply) -> Answer:
    adapter, reading = read_answer(reply.body, exchange.http)
    return Answer(form.path, form.fields, adapter, reading)
