"""Whole conversations: each turn of the assistant answers all that stands before it."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from outrider.replay.logs.base import Entry, Logged
from outrider.replay.logs.fields import MESSAGES, Unusable, bad, first_of, logged, text_of
from outrider.replay.logs.text import NO_ENCODER, NO_TEXT, as_ids, encoded_prompt
from outrider.replay.logs.text_encoder import TextEncoder

_ROLES = {"human": "user", "gpt": "assistant", "model": "assistant", "bot": "assistant"}


class ConversationFormat:
    """Reads `{"messages": [{"role", "content"}, …]}`, also with ShareGPT's `from` and `value`."""

    name: ClassVar[str] = "conversation"

    def recognises(self, entry: Entry) -> bool:
        """Whether messages are there."""
        messages = first_of(entry.value, MESSAGES)
        return isinstance(messages, list) and any(isinstance(each, dict) for each in messages)

    def answers(self, entry: Entry, encoder: TextEncoder | None) -> Iterator[Logged]:
        """Yield an answer per turn of the assistant; those of one conversation belong together."""
        messages = [
            _message(each) for each in first_of(entry.value, MESSAGES) if isinstance(each, dict)
        ]
        turns = [place for place, each in enumerate(messages) if each["role"] == "assistant"]
        if not turns:
            yield NO_TEXT
        name = entry.value.get("id") or ":".join(map(str, entry.place))
        cluster = str(name) if len(turns) > 1 else None
        for place in turns:
            if encoder is None:
                yield NO_ENCODER
                continue
            if not messages[place]["content"]:
                yield NO_TEXT
                continue
            try:
                yield logged(
                    encoded_prompt(messages[:place], encoder),
                    as_ids(encoder.encode(messages[place]["content"])),
                    entry.value,
                    tags=entry.tags,
                    cluster=cluster,
                    retokenized=True,
                )
            except Unusable as error:
                yield bad(error)


def _message(message: Mapping[str, Any]) -> dict[str, str]:
    role = str(message.get("role") or message.get("from") or "user")
    content = message.get("content")
    text = text_of(message.get("value") if content is None else content)
    return {"role": _ROLES.get(role, role), "content": text}
