"""What requests said so far, as suffix decoding looks it up."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outrider.engine.drafting.lookup.suffix_forest import SuffixForest, catch_up_and_draft
from outrider.engine.drafting.lookup.suffix_settings import SuffixSettings

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

    The latter holds those of the last requests that began, running ones included; where there are
    more than may be, the oldest leaves it.
    """

    def __init__(self, settings: SuffixSettings) -> None:
        self.settings = settings
        self.forest = SuffixForest(settings.max_tree_depth)
        self._factor = np.float32(settings.max_spec_factor)
        self._least = np.float32(settings.min_token_prob)
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
        if self.settings.max_cached_requests > 0:
            if name in self._answers:
                self._forget(name)
            request.answer = self.forest.open_text(self._root)
            self._answers[name] = request
            while len(self._answers) > self.settings.max_cached_requests:
                self._forget(next(iter(self._answers)))
        return request

    def extend(self, request: SuffixRequest, tokens: NDArray[np.int32]) -> None:
        """Catch up with `tokens` int32 [T], the request's whole history, prompt and output."""
        self.draft(request, tokens, np.empty(0, np.int32))

    def draft(
        self,
        request: SuffixRequest,
        tokens: NDArray[np.int32],
        room: NDArray[np.int32],
    ) -> tuple[int, float]:
        """Catch up with `tokens`, write a draft into `room`, return its length and its score.

        The score is the number of drafted tokens that are expected to follow, as counted.
        """
        if len(tokens) > request.room:
            self._make_room(request, len(tokens))
        while True:
            length, score = catch_up_and_draft(
                *self.forest.arrays, request.text, request.answer, self._root,
                request.prompt_tokens, tokens, room, self._factor, self._least,
            )  # fmt: skip
            if length >= 0:
                return length, float(score)
            self.forest.grow()

    def end(self, request: SuffixRequest) -> None:
        """Give back what is the request's own; its answer stays among all."""
        self.forest.fell(request.root)
        self.forest.close_text(request.text, keep_tree=False)

    def _make_room(self, request: SuffixRequest, tokens: int) -> None:
        request.room = max(2 * request.room, tokens)
        self.forest.reserve(request.text, request.room)
        if request.answer >= 0:
            self.forest.reserve(request.answer, request.room - request.prompt_tokens)

    def _forget(self, name: Hashable) -> None:
        request = self._answers.pop(name)
        self.forest.close_text(request.answer, keep_tree=True)
        request.answer = _NONE
