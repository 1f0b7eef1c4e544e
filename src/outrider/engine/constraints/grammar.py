"""A constraint that llguidance keeps."""

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from outrider.engine.constraints.vocabulary import GrammarVocabulary

NOTHING_FITS = "NoExtensionBias"
"""How llguidance calls a place where the grammar goes on and no token does."""


class GrammarConstraint:
    """Follows an output through a grammar; see `Constraint`.

    `fresh` is a matcher at the grammar's beginning, of which this one takes a copy. Where the end
    tokens end nothing, `ignore_eos`, they are never allowed, and the output ends where nothing
    can be added.
    """

    def __init__(
        self, fresh: LLMatcher, vocabulary: GrammarVocabulary, *, ignore_eos: bool = False
    ) -> None:
        self._fresh = fresh
        self._matcher = fresh.deep_copy()
        self._vocabulary = vocabulary
        self._ignore_eos = ignore_eos
        self._told: list[int] = []
        self._ended = False
        self._failure: str | None = None

    @property
    def may_end(self) -> bool:
        """Whether the output so far is complete as it stands."""
        return self._failure is None and self._matcher.is_accepting()

    @property
    def ended(self) -> bool:
        """Whether the output is complete and nothing can be added to it."""
        return self._ended

    @property
    def failure(self) -> str | None:
        """Why the grammar cannot go on."""
        return self._failure

    def advance(self, token: int) -> None:
        """Take note of one more output token, which was allowed."""
        if self._failure is not None:
            return
        self._told.append(token)
        self._matcher.consume_token(token)
        self._ended = self._nothing_fits()
        self._note_failure()

    def allow(self, drafted: NDArray[np.int32], allowed: NDArray[np.bool_]) -> int:
        """Return how many of `drafted` may stand, and fill so many rows of `allowed` and one more.

        Where the grammar breaks down after a drafted token, that token does not stand: what
        follows it is not known, and plain decoding will find out if it gets there.
        """
        self._look(allowed[0])
        consumed = standing = 0
        for token in drafted.tolist():
            if self._matcher.is_error() or not allowed[standing, token]:
                break
            standing += 1
            if token in self._vocabulary.end_token_ids:
                allowed[standing] = True
                break
            self._matcher.consume_token(token)
            consumed += 1
            if self._nothing_fits():
                allowed[standing] = True
                break
            self._look(allowed[standing])
        if self._matcher.is_error() and consumed:
            standing -= 1
        self._note_failure(spoiled=consumed)
        self._go_back(consumed)
        return standing

    def _look(self, row: NDArray[np.bool_]) -> None:
        row[:] = self._vocabulary.allowed_by(self._matcher)
        if self._ignore_eos:
            row[self._vocabulary.end_token_ids] = False

    def _nothing_fits(self) -> bool:
        """Whether the output is complete and only an end token could follow."""
        if self._matcher.is_error() or not self._matcher.is_accepting():
            return False
        if self._matcher.is_stopped():
            return True
        # A vocabulary without some letter may end what the grammar would not.
        row = self._vocabulary.allowed_by(self._matcher)
        row[self._vocabulary.end_token_ids] = False
        return not row.any()

    def _note_failure(self, *, spoiled: int = 0) -> None:
        if not spoiled and self._matcher.is_error():
            self._failure = reason_of(self._matcher.get_error())

    def _go_back(self, consumed: int) -> None:
        """Forget the last `consumed` tokens."""
        if consumed and not self._matcher.rollback(consumed):
            # An error is final for a matcher.
            self._matcher = self._fresh.deep_copy()
            self._matcher.consume_tokens(self._told)


def reason_of(error: str) -> str:
    """Return what llguidance says of an error, in one line."""
    if error.startswith(NOTHING_FITS):
        return "the grammar goes on where no token of the model does"
    return f"the grammar cannot go on: {' '.join(error.removesuffix('<non-verbose/>').split())}"
