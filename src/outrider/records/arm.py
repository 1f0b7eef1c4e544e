"""One setting under comparison."""

from dataclasses import dataclass
from typing import Literal

TieRule = Literal["recent", "earliest"]


@dataclass(frozen=True, slots=True)
class Arm:
    """A drafting method and its settings; `method` "none" with K = 0 is no speculation.

    `num_speculative_tokens` is K, the configured maximum draft length. The `prompt_lookup_*`
    fields, `ngram_tie` and `ngram_fill` (missing drafts filled up to K) are None for methods that
    have no use for them.
    """

    name: str
    method: str
    num_speculative_tokens: int
    prompt_lookup_min: int | None = None
    prompt_lookup_max: int | None = None
    ngram_tie: TieRule | None = None
    ngram_fill: bool | None = None

    @property
    def speculates(self) -> bool:
        """Whether the arm drafts at all."""
        return self.num_speculative_tokens > 0


BASELINE = Arm(name="none", method="none", num_speculative_tokens=0)
