"""Prompt and completion as text."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from outrider.records.reading import NoMetrics
from outrider.replay.answer import TokenIds
from outrider.replay.logs.base import Entry, Logged
from outrider.replay.logs.fields import (
    COMPLETION_TEXT,
    MESSAGES,
    PROMPT_TEXT,
    Unusable,
    bad,
    first_of,
    logged,
    text_of,
)
from outrider.replay.logs.text_encoder import TextEncoder

NO_ENCODER = NoMetrics("logged as text, which needs --tokenizer to become token ids")
NO_TEXT = NoMetrics("an answer without text")


class TextFormat:
    """Reads `{"prompt": "…", "completion": "…"}`, the prompt as text or as messages."""

    name: ClassVar[str] = "text"

    def recognises(self, entry: Entry) -> bool:
        """Whether a completion is there as text, and a prompt."""
        value = entry.value
        return isinstance(first_of(value, COMPLETION_TEXT), str) and prompt_of(value) is not None

    def answers(self, entry: Entry, encoder: TextEncoder | None) -> Iterator[Logged]:
        """Yield the one answer."""
        value = entry.value
        completion = first_of(value, COMPLETION_TEXT)
        if encoder is None:
            yield NO_ENCODER
            return
        try:
            yield logged(
                encoded_prompt(prompt_of(value), encoder),
                as_ids(encoder.encode(str(completion))),
                value,
                tags=entry.tags,
                finish_reason=value.get("finish_reason"),
                retokenized=True,
            )
        except Unusable as error:
            yield bad(error)


def prompt_of(value: Mapping[str, Any]) -> Any:
    """Return the prompt, a text or messages; None where there is none."""
    return first_of(value, (*PROMPT_TEXT, *MESSAGES))


def encoded_prompt(prompt: object, encoder: TextEncoder) -> TokenIds:
    """Return the ids of a text, or of messages up to where the answer begins."""
    if isinstance(prompt, str):
        return as_ids(encoder.encode(prompt))
    if isinstance(prompt, list) and prompt and all(isinstance(each, dict) for each in prompt):
        # Most templates take texts alone, and none takes a message without content.
        messages = [{**each, "content": text_of(each.get("content"))} for each in prompt]
        return as_ids(encoder.encode_chat(messages))
    if prompt == []:
        raise Unusable("no message stands before the answer")
    raise Unusable("the prompt is neither text nor messages")


def as_ids(ids: list[int]) -> TokenIds:
    """Return what an encoder gave as an array."""
    return np.array(ids, np.int32)
