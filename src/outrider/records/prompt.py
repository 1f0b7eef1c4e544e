"""One prompt as it was measured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PromptRecord:
    """A prompt with the tokens that the model was given, its chat template included.

    `kind` is the group that figures are given for; `max_tokens` is the most output tokens that
    were asked for; `messages_json` is the chat as a JSON array of objects with role and content.
    """

    prompt_id: str
    kind: str
    token_ids: tuple[int, ...]
    max_tokens: int
    messages_json: str
