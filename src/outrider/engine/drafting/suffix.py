"""Suffix decoding: what most often followed the current ending, here or in earlier answers."""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from outrider.engine.drafting.draft import Draft
from outrider.engine.drafting.lookup.suffix_cache import SuffixCache, SuffixRequest
from outrider.engine.drafting.lookup.suffix_settings import SuffixSettings
from outrider.engine.sequence import Sequence
from outrider.engine.verification.base import Verdict
from outrider.errors import InvalidSetting
from outrider.records.arm import Arm


@dataclass(frozen=True, slots=True)
class SuffixDrafter:
    """Drafts from the sequence's own prompt and output, and from the outputs of all, no model.

    The rules are those of arctic-inference 0.3.0, as vLLM calls it. A sequence's own part goes
    when it ends; its output stays until it is the oldest of more than are kept. Raises
    `InvalidSetting` unless K >= 1.
    """

    name: ClassVar[str] = "suffix"

    num_speculative_tokens: int
    settings: SuffixSettings = field(default_factory=SuffixSettings)
    cache: SuffixCache = field(init=False, repr=False, compare=False)
    _requests: dict[Sequence, SuffixRequest] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.num_speculative_tokens < 1:
            raise InvalidSetting(
                f"K = {self.num_speculative_tokens} for suffix decoding",
                "1 or more",
                "raise num_speculative_tokens, or use method none",
            )
        object.__setattr__(self, "cache", SuffixCache(self.settings))
        # Compiles here, so that no measured step pays for it.
        trial = SuffixCache(SuffixSettings(max_cached_requests=1))
        for name in range(2):
            request = trial.begin(name, 1)
            trial.extend(request, np.zeros(2, np.int32))
            trial.end(request)

    @classmethod
    def from_arm(cls, arm: Arm) -> Self:
        """Take K from `arm`; all else is at vLLM's defaults."""
        return cls(arm.num_speculative_tokens)

    def propose(self, batch: list[Sequence], limit: NDArray[np.int64]) -> Draft:
        """Draft for each sequence at most min(K, `limit`) tokens."""
        assert limit.min(initial=0) >= 0, "no room for the bonus token"
        draft = Draft.empty(len(batch), self.num_speculative_tokens)
        for row, sequence in enumerate(batch):
            request = self._requests.get(sequence) or self._begin(sequence)
            room = draft.tokens[row, : limit[row]]
            draft.lengths[row], _ = self.cache.draft(request, sequence.token_ids, room)
            draft.tokens[row, draft.lengths[row] :] = -1
        return draft

    def observe(self, batch: list[Sequence], verdict: Verdict) -> None:
        """Learn nothing: what was emitted comes with the next draft, or the end."""

    def forget(self, sequence: Sequence) -> None:
        """Take in its last tokens, and let go of what is its own."""
        request = self._requests.pop(sequence, None)
        if request is not None:
            self.cache.extend(request, sequence.token_ids)
            self.cache.end(request)

    def _begin(self, sequence: Sequence) -> SuffixRequest:
        request = self.cache.begin(sequence.request_id, sequence.prompt_tokens)
        self._requests[sequence] = request
        return request
