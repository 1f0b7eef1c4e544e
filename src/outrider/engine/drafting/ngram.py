"""Prompt lookup: what followed the last time that the sequence's current ending occurred."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from outrider.engine.compiling import compiled
from outrider.engine.drafting.draft import Draft
from outrider.engine.sequence import Sequence
from outrider.engine.verification.base import Verdict
from outrider.errors import InvalidSetting
from outrider.records.arm import Arm, TieRule


@dataclass(frozen=True, slots=True)
class NgramDrafter:
    """Drafts from the sequence's own prompt and output, with no model.

    The longest n in [`prompt_lookup_min`, `prompt_lookup_max`] whose last n tokens occurred
    earlier decides; among its occurrences `tie` takes the most recent or the earliest. They may
    overlap the ending itself. The draft is what followed, up to the end of the history, so the
    most recent match in a text of period r yields at most r tokens. Raises `InvalidSetting`
    unless K >= 1 and 1 <= min <= max.
    """

    name: ClassVar[str] = "ngram"

    num_speculative_tokens: int
    prompt_lookup_min: int
    prompt_lookup_max: int
    tie: TieRule = "recent"

    def __post_init__(self) -> None:
        if self.num_speculative_tokens < 1:
            raise InvalidSetting(
                f"K = {self.num_speculative_tokens} for n-gram drafting",
                "1 or more",
                "raise num_speculative_tokens, or use method none",
            )
        if not 1 <= self.prompt_lookup_min <= self.prompt_lookup_max:
            raise InvalidSetting(
                f"prompt_lookup_min {self.prompt_lookup_min}, max {self.prompt_lookup_max}",
                "1 <= min <= max",
                "use for instance min 2 and max 4",
            )
        if self.tie not in ("recent", "earliest"):
            raise InvalidSetting(
                f"n-gram tie rule {self.tie!r}", "recent or earliest", "use one of these"
            )
        # Compiles here, so that no measured step pays for it.
        _lookup(np.zeros(1, np.int32), np.zeros(1, np.int32), 1, 1, 1)

    @classmethod
    def from_arm(cls, arm: Arm) -> Self:
        """Take the settings of `arm`, which states both ends of the n-gram range."""
        shortest, longest = arm.prompt_lookup_min, arm.prompt_lookup_max
        if shortest is None or longest is None:
            raise InvalidSetting(
                f"n-gram arm {arm.name!r} without a full n-gram range",
                "prompt_lookup_min and prompt_lookup_max",
                "set both",
            )
        return cls(arm.num_speculative_tokens, shortest, longest, arm.ngram_tie or "recent")

    def propose(self, batch: list[Sequence], limit: NDArray[np.int64]) -> Draft:
        """Draft for each sequence at most min(K, `limit`) tokens."""
        assert limit.min(initial=0) >= 0, "no room for the bonus token"
        draft = Draft.empty(len(batch), self.num_speculative_tokens)
        direction = 1 if self.tie == "earliest" else -1
        for row, sequence in enumerate(batch):
            room = draft.tokens[row, : limit[row]]
            draft.lengths[row] = _lookup(
                sequence.token_ids,
                room,
                self.prompt_lookup_min,
                self.prompt_lookup_max,
                direction,
            )
        return draft

    def observe(self, batch: list[Sequence], verdict: Verdict) -> None:
        """Learn nothing: the history is all that counts."""


@compiled()
def _lookup(
    tokens: NDArray[np.int32], room: NDArray[np.int32], shortest: int, longest: int, direction: int
) -> int:
    """Write the tokens after the chosen match into `room` and return how many there are.

    Candidates for the match's last position are tried in `direction`: 1 from the start, -1 from
    the end.
    """
    last = tokens.size - 1
    best = shortest - 1
    match = last
    end = 0 if direction > 0 else last - 1
    for _ in range(last):
        length = 0
        while length < longest and length <= end and tokens[end - length] == tokens[last - length]:
            length += 1
        if length > best:
            best = length
            match = end
            if best == longest:
                break
        end += direction
    drafted = min(room.size, last - match)
    for at in range(drafted):  # a slice assignment here takes seconds to compile
        room[at] = tokens[match + 1 + at]
    return drafted
