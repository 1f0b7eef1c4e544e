"""From tokens to text while they come, a whole character at a time."""

from collections.abc import Sequence
from typing import Any

from tokenizers.decoders import DecodeStream

LOST_TRACK = "Invalid prefix"
"""How the decoder's complaint begins when bytes that are no text changed what it had decoded."""


class Detokenizer:
    """Turns one request's output tokens into text, in pieces that are never taken back.

    Bytes that do not yet make a character wait for the next token, and are left out if none
    comes. `backend` is a tokenizer of the `tokenizers` library. The end of `prompt` tells it what
    comes before the output, since some tokenizers drop the space that begins a text.
    """

    PROMPT_TOKENS = 8
    """How much of the prompt is looked at; a space needs one token, a character up to four."""

    def __init__(
        self, backend: Any, prompt: Sequence[int] = (), *, skip_special_tokens: bool = True
    ) -> None:
        self._backend = backend
        self._skip = skip_special_tokens
        before = [int(token) for token in prompt[-self.PROMPT_TOKENS :]]
        text = backend.decode(before, skip_special_tokens=skip_special_tokens)
        # Half a character at its end would come out together with the first token.
        ids = [] if text.endswith("\N{REPLACEMENT CHARACTER}") else before
        self._stream = DecodeStream(ids=ids, skip_special_tokens=skip_special_tokens)

    def step(self, token: int) -> str:
        """Return the text that `token` completes, often its own; "" for an id without any."""
        try:
            piece = self._stream.step(self._backend, token)
        except Exception as error:
            if not str(error).startswith(LOST_TRACK):
                raise
            self._stream = DecodeStream(skip_special_tokens=self._skip)
            piece = self._stream.step(self._backend, token)
        return piece or ""
