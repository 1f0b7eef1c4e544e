"""What the step loop asks of a constraint on one request's output."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Constraint(Protocol):
    """Follows one request's output token by token and knows what may come next.

    A constraint belongs to one request: it remembers the tokens that it was told.
    """

    @property
    def ended(self) -> bool:
        """Whether the output is complete and nothing can be added to it."""

    @property
    def failure(self) -> str | None:
        """Why the output can be neither continued nor ended, in a few words; None while it can."""

    def allow(self, drafted: NDArray[np.int32], allowed: NDArray[np.bool_]) -> int:
        """Return how many of `drafted` int32 [d] may stand, those before the first forbidden one.

        Sets `allowed` [d + 1, V], in as many rows and one more: row i says which tokens may come
        after the output and `drafted[:i]`. All may in a row after the end, which decides nothing.
        What was drafted is forgotten again. A `failure` may come to light; the rows say nothing
        then.
        """

    def advance(self, token: int) -> None:
        """Take note of one more output token, which was allowed."""
