"""Answers of an OpenAI-compatible server: best with token ids, else as text with their request."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from outrider.records.reading import NoMetrics
from outrider.replay.answer import TokenIds
from outrider.replay.logs.base import Entry, Logged
from outrider.replay.logs.fields import Unusable, bad, logged, text_of, token_ids
from outrider.replay.logs.text import NO_ENCODER, NO_TEXT, as_ids, encoded_prompt
from outrider.replay.logs.text_encoder import TextEncoder

NO_PROMPT = NoMetrics(
    "neither token ids nor the request: ask vLLM for return_token_ids, or log the request beside it"
)


class BodyFormat:
    """Reads bodies with `choices`, of vLLM with `return_token_ids` as they are."""

    name: ClassVar[str] = "body"

    def recognises(self, entry: Entry) -> bool:
        """Whether it is such a body."""
        return type(entry.value.get("choices")) is list

    def answers(self, entry: Entry, encoder: TextEncoder | None) -> Iterator[Logged]:
        """Yield an answer per choice; those of one body are resampled together."""
        body = entry.value
        choices = [each for each in body["choices"] if isinstance(each, dict)]
        if not choices:
            yield NO_TEXT
        name = body.get("id")
        cluster = str(name) if name and len(choices) > 1 else None
        for choice in choices:
            try:
                yield _answer(entry, choice, encoder, cluster, alone=len(choices) == 1)
            except Unusable as error:
                yield bad(error)


def _answer(
    entry: Entry,
    choice: Mapping[str, Any],
    encoder: TextEncoder | None,
    cluster: str | None,
    *,
    alone: bool,
) -> Logged:
    body, request = entry.value, entry.request
    ids = choice.get("token_ids")
    prompt = choice.get("prompt_token_ids")
    prompt = body.get("prompt_token_ids") if prompt is None else prompt
    told = {**request, **body}
    told.pop("choices")
    if ids is not None and prompt is not None:
        usage = body.get("usage")
        return logged(
            _counted(token_ids(prompt, "prompt"), usage, "prompt_tokens", "prompt"),
            _counted(
                token_ids(ids, "completion"),
                usage if alone else None,
                "completion_tokens",
                "answer",
            ),
            told,
            tags=entry.tags,
            finish_reason=choice.get("finish_reason"),
            cluster=cluster,
        )
    message = choice.get("message")
    content = message.get("content") if isinstance(message, dict) else choice.get("text")
    asked = request.get("messages") or request.get("prompt")
    if asked is None:
        return NO_PROMPT
    text = text_of(content)
    if not text:
        return NO_TEXT
    if encoder is None:
        return NO_ENCODER
    return logged(
        encoded_prompt(asked, encoder),
        as_ids(encoder.encode(text)),
        told,
        tags=entry.tags,
        finish_reason=choice.get("finish_reason"),
        cluster=cluster,
        retokenized=True,
    )


def _counted(ids: TokenIds, usage: object, name: str, what: str) -> TokenIds:
    """Return the ids; raises Unusable where the server counted others."""
    told = usage.get(name) if isinstance(usage, dict) else None
    if type(told) is int and told != len(ids):
        raise Unusable(
            f"the {what} has {len(ids):,} token ids and usage.{name} says {told:,}; part of it is"
            " missing or of another answer"
        )
    return ids
