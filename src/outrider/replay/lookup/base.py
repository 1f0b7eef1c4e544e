"""What a lookup drafter offers to a replay."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from outrider.replay.batch import AnswerBatch


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """What would be drafted at each position of a log, whatever the step that comes there.

    At [g, t] the answer's tokens before `batch.tokens[t]` are known, and the target's choices are
    those from t on: `available` tokens are proposed, of which the first `matching` are what the
    log goes on with. Both are of drafts of at most the g-th K, and known at least where a step of
    that K begins; G is 1 where a draft at a smaller K is the beginning of that at a larger one.
    Positions in prompts hold nothing.
    """

    matching: NDArray[np.uint8]
    available: NDArray[np.uint8]


class LookupPass(Protocol):
    """Goes through a log in its order and finds the draft at each position.

    The history up to a position decides the draft there, so that one pass serves every K.
    """

    @property
    def ordered(self) -> bool:
        """Whether answers have to come one after another, in the order of the log."""

    def runs(self, batch: AnswerBatch, ks: tuple[int, ...]) -> Runs:
        """Return the drafts at every output position but the first, for the draft lengths `ks`.

        The first output token comes from the prefill. Batches come in the order of the log.
        """


class LookupSetting(Protocol):
    """One drafter with all of its settings but K."""

    @property
    def method(self) -> str:
        """The drafting method, as servers name it."""

    @property
    def name(self) -> str:
        """What tells the setting from all others, in a few words."""

    @property
    def remembers(self) -> bool:
        """Whether earlier answers decide drafts of later ones."""

    @property
    def server_keys(self) -> Mapping[str, int | float | str]:
        """Its settings under vLLM's names, the method and K aside."""

    def start(self) -> LookupPass:
        """Begin a pass that has seen nothing yet."""
