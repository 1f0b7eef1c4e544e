"""The state of one running request, as the loop, drafters and verifiers see it."""

from collections.abc import Sequence as TokenList

import numpy as np
from numpy.typing import NDArray

from outrider.engine.sampling import Sampling
from outrider.errors import InvalidSetting


class Sequence:
    """A request's prompt and the output it has so far, in one buffer of int32 token ids.

    The buffer is allocated once for the prompt and `max_tokens` output tokens; `slot` is the
    request's place in the target's cache. Raises
    `InvalidSetting` for an empty prompt or `max_tokens` below 1.
    """

    __slots__ = ("_buffer", "_length", "prompt_tokens", "request_id", "sampling", "slot")

    def __init__(
        self,
        request_id: str,
        prompt: TokenList[int] | NDArray[np.int32],
        *,
        max_tokens: int,
        sampling: Sampling,
        slot: int = 0,
    ) -> None:
        if len(prompt) == 0:
            raise InvalidSetting(
                f"an empty prompt in request {request_id!r}",
                "at least one token",
                "give the request a prompt",
            )
        if max_tokens < 1:
            raise InvalidSetting(
                f"max_tokens {max_tokens}", "1 or more", "raise max_tokens to at least 1"
            )
        self.request_id = request_id
        self.prompt_tokens = len(prompt)
        self.sampling = sampling
        self.slot = slot
        self._buffer = np.empty(len(prompt) + max_tokens, np.int32)
        self._buffer[: len(prompt)] = prompt
        self._length = len(prompt)

    def __len__(self) -> int:
        return self._length

    @property
    def token_ids(self) -> NDArray[np.int32]:
        """Prompt and output, a view that later appends do not grow."""
        return self._buffer[: self._length]

    @property
    def output_token_ids(self) -> NDArray[np.int32]:
        """The output alone, a view that later appends do not grow."""
        return self._buffer[self.prompt_tokens : self._length]

    @property
    def room_tokens(self) -> int:
        """How many more output tokens fit."""
        return len(self._buffer) - self._length

    def append(self, tokens: TokenList[int] | NDArray[np.int32]) -> None:
        """Add output tokens; the caller has cut them to `room_tokens`."""
        end = self._length + len(tokens)
        assert end <= len(self._buffer), "more tokens than max_tokens"
        self._buffer[self._length : end] = tokens
        self._length = end
