"""Prompt and completion as token ids: the exact form of a log."""

from collections.abc import Iterator
from typing import ClassVar

from outrider.replay.logs.base import Entry, Logged
from outrider.replay.logs.fields import (
    COMPLETION_IDS,
    PROMPT_IDS,
    Unusable,
    bad,
    first_of,
    logged,
    token_ids,
)
from outrider.replay.logs.text_encoder import TextEncoder


class TokenIdFormat:
    """Reads `{"prompt_token_ids": […], "completion_token_ids": […], any tags}`."""

    name: ClassVar[str] = "token-ids"

    def recognises(self, entry: Entry) -> bool:
        """Whether a completion is there in ids."""
        return first_of(entry.value, COMPLETION_IDS) is not None

    def answers(self, entry: Entry, encoder: TextEncoder | None) -> Iterator[Logged]:  # noqa: ARG002
        """Yield the one answer."""
        value = entry.value
        try:
            yield logged(
                token_ids(first_of(value, PROMPT_IDS), "prompt"),
                token_ids(first_of(value, COMPLETION_IDS), "completion"),
                value,
                tags=entry.tags,
                finish_reason=value.get("finish_reason"),
            )
        except Unusable as error:
            yield bad(error)
