"""What requests said so far, as suffix decoding looks it up."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outrider.engine.drafting.lookup.suffix_forest import SuffixForest, catch_up_and_draft

_NONE = -1


@dataclass(slots=True, eq=False)
class SuffixRequest:
    """One running request: the tree and the text of its own, and its answer among all.

    `answer` is -1 once it is not, or no longer, among them.
    """

    name: Hashable
    prompt_tokens: int
    root: int
    text: int
    answer: int
    room: int = 0
    """Tokens that fit."""


class SuffixCache:
    """A tree of its own for each running request, and one of all recent answers.

    The latter holds those of the last `max_cached_requests` that began, running ones included;
    where there are more the oldest leaves it. 0 is no such tree. No substring is longer than
    `max_tree_depth` tokens.
    """

    def __init__(self, max_tree_depth: int = 24, max_cached_requests: int = 10_000) -> None:
        self.max_cached_requests = max_cached_requests
        self.forest = SuffixForest(max_tree_depth)
        self._root = self.forest.plant()
        self._answers: dict[Hashable, SuffixRequest] = {}

    @property
    def cached_requests(self) -> int:
        """How many requests have their answer in the tree of all."""
        return len(self._answers)

    def begin(self, name: Hashable, prompt_tokens: int) -> SuffixRequest:
        """Begin a request whose prompt is the first `prompt_tokens` tokens of its history.

        The answer of an earlier request of that `name` is forgotten.
        """
        root = self.forest.plant()
        request = SuffixRequest(name, prompt_tokens, root, self.forest.open_text(root), _NONE)
        if self.max_cached_requests > 0:
            if name in self._answers:
                self._forget(name)
            request.answer = self.forest.open_text(self._root)
            self._answers[name] = request
            while len(self._answers) > self.max_cached_requests:
                self._forget(next(iter(self._answers)))
        return request

    def extend(self, request: SuffixRequest, tokens: NDArray[np.int32]) -> None:
        """Catch up with `tokens` int32 [T], the request's whole history, prompt and output."""
        nothing = np.empty(0, np.int32)
        self.draft(request, tokens, nothing, np.float32(0.0), np.float32(1.0))

    def draft(
        self,
        request: SuffixRequest,
        tokens: NDArray[np.int32],
        room: NDArray[np.int32],
        max_spec_factor: np.float32,
        min_token_prob: np.float32,
    ) -> tuple[int, float]:
        """Catch up with `tokens`, write a draft into `room`, return its length and its score.

        After a match of m tokens at most m x `max_spec_factor` are drafted. `min_token_prob` is
        the least chance, in 0 to 1, that all tokens up to one may have together, as counted.
        """
        if len(tokens) > request.room:
            self._make_room(request, len(tokens))
        while True:
            length, score = catch_up_and_draft(
                self.forest.arrays, request.text, request.answer, self._root,
                request.prompt_tokens, tokens, room, max_spec_factor, min_token_prob,
            )  # fmt: skip
            if length >= 0:
                return length, score
            self.forest.grow()

    def end(self, request: SuffixRequest) -> None:
        """Give back what is the request's own; its answer stays among all."""
        self.forest.fell(request.root)
        self.forest.close_text(request.text, keep_tree=False)
        request.text = request.root = _NONE

    def _make_room(self, request: SuffixRequest, tokens: int) -> None:
        request.room = max(2 * request.room, tokens)
        self.forest.reserve(request.text, request.room)
        if request.answer >= 0:
            self.forest.reserve(request.answer, request.room - request.prompt_tokens)

    def _forget(self, name: Hashable) -> None:
        request = self._answers.pop(name)
        self.forest.close_text(request.answer, keep_tree=True)
        request.answer = _NONE
