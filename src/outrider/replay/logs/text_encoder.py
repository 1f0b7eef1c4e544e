"""From logged text to token ids."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class TextEncoder(Protocol):
    """A tokenizer, with the model's chat template where it has one."""

    @property
    def name(self) -> str:
        """What the user called it."""

    @property
    def vocabulary_tokens(self) -> int:
        """How many tokens there are."""

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without special tokens around it."""

    def encode_chat(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """The ids of a conversation up to where the answer begins."""
