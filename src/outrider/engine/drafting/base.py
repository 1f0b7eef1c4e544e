"""What every drafter offers."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from outrider.engine.drafting.draft import Draft
from outrider.engine.sequence import Sequence
from outrider.engine.verification.base import Verdict


class Drafter(Protocol):
    """Proposes tokens ahead of the target, and learns what became of them."""

    @property
    def name(self) -> str:
        """The method, as an arm names it."""

    def propose(self, batch: list[Sequence], limit: NDArray[np.int64]) -> Draft:
        """Draft for each sequence at most `limit` [B] tokens: the lesser of K and the room left."""

    def observe(self, batch: list[Sequence], verdict: Verdict) -> None:
        """Learn how the last draft of this batch was judged, its emitted tokens appended."""


@runtime_checkable
class KeepsState(Protocol):
    """A drafter that holds something for each request until the request has ended."""

    def forget(self, sequence: Sequence) -> None:
        """Let go of what is held for `sequence`, which has ended or was cancelled, if anything."""


class DraftJudge(Protocol):
    """Says which drafts to go on with, to a drafter that makes them token by token."""

    def going_on(
        self,
        log_odds: NDArray[np.float64],
        drafted: NDArray[np.int64],
        most: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Return bool [B], the drafts to which another token is worth adding.

        Each has `drafted` [B] tokens, of `log_odds` [B, j], and may get `most` [B], more than that
        in one of them at least. The tokens were proposed with certainty, so that any may decide.
        """
