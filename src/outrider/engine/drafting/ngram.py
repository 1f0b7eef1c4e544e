"""Prompt lookup: what followed the last time that the sequence's current ending occurred."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from outrider.engine.drafting.draft import Draft
from outrider.engine.drafting.lookup.ngram_index import NgramIndex
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
    most recent match in a text of period r yields at most r tokens. With `fill` a draft is as long
    as it may be: what is missing, all of it where nothing matches, repeats the last token, as on
    vLLM's V2 runner.

    Each sequence has an index of its own, which grows with it and goes when it goes. Raises
    `InvalidSetting` unless K >= 1 and 1 <= min <= max.
    """

    name: ClassVar[str] = "ngram"

    num_speculative_tokens: int
    prompt_lookup_min: int
    prompt_lookup_max: int
    tie: TieRule = "recent"
    fill: bool = False
    _indexes: WeakKeyDictionary[Sequence, NgramIndex] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

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
        nothing = np.zeros(1, np.int32)
        NgramIndex(1).draft(nothing, nothing, 1, 1, earliest=False)

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
        return cls(
            arm.num_speculative_tokens,
            shortest,
            longest,
            arm.ngram_tie or "recent",
            fill=bool(arm.ngram_fill),
        )

    def propose(self, batch: list[Sequence], limit: NDArray[np.int64]) -> Draft:
        """Draft for each sequence at most min(K, `limit`) tokens."""
        assert limit.min(initial=0) >= 0, "no room for the bonus token"
        matched_tokens = np.zeros(len(batch), np.int64)
        draft = replace(
            Draft.empty(len(batch), self.num_speculative_tokens), matched_tokens=matched_tokens
        )
        for row, sequence in enumerate(batch):
            index = self._indexes.get(sequence)
            if index is None:
                index = self._indexes[sequence] = NgramIndex(self.prompt_lookup_max)
            tokens = sequence.token_ids
            room = draft.tokens[row, : limit[row]]
            drafted = index.draft(
                tokens,
                room,
                self.prompt_lookup_min,
                self.prompt_lookup_max,
                earliest=self.tie == "earliest",
            )
            if drafted:
                matched_tokens[row] = index.depth
            if self.fill:
                room[drafted:] = tokens[-1]
                drafted = len(room)
            draft.lengths[row] = drafted
        return draft

    def observe(self, batch: list[Sequence], verdict: Verdict) -> None:
        """Learn nothing: the history is all that counts."""
