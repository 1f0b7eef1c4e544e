"""The state of one running request, as the loop, drafters and verifiers see it."""

from collections.abc import Collection
from collections.abc import Sequence as TokenList
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outrider.engine.constraints.base import Constraint
from outrider.engine.detokenizer import Detokenizer
from outrider.engine.sampling import Sampling
from outrider.engine.sampling.stops import Stops
from outrider.errors import InvalidSetting

if TYPE_CHECKING:
    from outrider.engine.sampling.logprobs import Logprobs


class Sequence:
    """A request's prompt and the output it has so far, in one buffer of int32 token ids.

    The buffer is allocated once for the prompt and `max_tokens` output tokens. The target has
    cached the first `computed_tokens` tokens, in the blocks of `block_table`. `cached_tokens` were
    there already when the request began, None before it does. `block_names` and `offered_blocks`
    are what `BlockCache` remembers of it. `stops` says where the output ends: where `sampling` asks
    for it, at one of the model's own `end_token_ids`, or else at `max_tokens`. Without a
    `detokenizer` there is no text. A `constraint`, started for this request alone, says what the
    output may be. `prompt_logprobs` fill up while the prompt is computed, if asked for. Raises
    `InvalidSetting` for an empty prompt, `max_tokens` below 1, or stop strings without text.
    """

    __slots__ = (
        "__weakref__",
        "_buffer",
        "_length",
        "block_names",
        "block_table",
        "cached_tokens",
        "computed_tokens",
        "constraint",
        "offered_blocks",
        "prompt_logprobs",
        "prompt_tokens",
        "request_id",
        "sampling",
        "stops",
    )

    def __init__(
        self,
        request_id: str,
        prompt: TokenList[int] | NDArray[np.int32],
        *,
        max_tokens: int,
        sampling: Sampling,
        end_token_ids: Collection[int] = (),
        detokenizer: Detokenizer | None = None,
        constraint: Constraint | None = None,
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
        self.constraint = constraint
        self.stops = Stops(
            sampling.parameters,
            end_token_ids=end_token_ids,
            max_tokens=max_tokens,
            detokenizer=detokenizer,
            constraint=constraint,
        )
        self.prompt_logprobs: list[Logprobs] = []
        self.computed_tokens = 0
        self.cached_tokens: int | None = None
        self.block_table: list[int] = []
        self.block_names: list[bytes] = []
        self.offered_blocks = 0
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
    def most_tokens(self) -> int:
        """How long prompt and output together may become."""
        return len(self._buffer)

    @property
    def room_tokens(self) -> int:
        """How many more output tokens fit."""
        return len(self._buffer) - self._length

    @property
    def asks_prompt_logprobs(self) -> bool:
        """Whether log-probabilities of its prompt are still to be told."""
        in_prefill = self._length == self.prompt_tokens
        return in_prefill and self.sampling.parameters.prompt_logprobs is not None

    def append(self, tokens: TokenList[int] | NDArray[np.int32]) -> None:
        """Add output tokens, no more than `room_tokens`; `stops` has cut them."""
        end = self._length + len(tokens)
        assert end <= len(self._buffer), "more tokens than max_tokens"
        self._buffer[self._length : end] = tokens
        self._length = end
