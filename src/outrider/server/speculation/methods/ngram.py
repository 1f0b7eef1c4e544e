"""Prompt lookup, as a user configures it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from outrider.engine.drafting.base import DraftJudge
from outrider.engine.drafting.ngram import NgramDrafter
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.models.base import TargetModel
from outrider.errors import InvalidSetting
from outrider.server.speculation.checkpoint import draft_checkpoint
from outrider.server.speculation.config import SpeculativeConfig
from outrider.server.speculation.draft_length import draft_length
from outrider.server.speculation.target_facts import TargetFacts

DEFAULT_LOOKUP = 5


@dataclass(frozen=True, slots=True)
class NgramMethod:
    """Drafts what followed the longest of the n-grams, `prompt_lookup_min` <= n <= `_max`.

    Among several places the most recent counts, as on vLLM's second model runner.
    """

    name: ClassVar[str] = "ngram"
    keys: ClassVar[frozenset[str]] = frozenset({"prompt_lookup_min", "prompt_lookup_max"})
    checkpoint: ClassVar[None] = None

    num_speculative_tokens: int
    prompt_lookup_min: int
    prompt_lookup_max: int

    @classmethod
    def resolve(cls, config: SpeculativeConfig, target: TargetFacts) -> Self:
        """Fill in the n-gram lengths: 5 and 5, or the one that is given for both."""
        draft_checkpoint(cls.name, config, target)
        shortest, longest = config.prompt_lookup_min, config.prompt_lookup_max
        shortest = shortest or longest or DEFAULT_LOOKUP
        longest = longest or shortest
        if shortest > longest:
            raise InvalidSetting(
                f"prompt_lookup_min={shortest} must be <= prompt_lookup_max={longest}",
                "n-gram lengths in that order",
                "swap them, or leave one out to have both alike",
            )
        return cls(draft_length(cls.name, config), shortest, longest)

    @property
    def settings(self) -> Mapping[str, object]:
        """Both n-gram lengths."""
        return {
            "prompt_lookup_min": self.prompt_lookup_min,
            "prompt_lookup_max": self.prompt_lookup_max,
        }

    def describe(self) -> str:
        """Say how long the n-grams are."""
        return f"n-grams of {self.prompt_lookup_min} to {self.prompt_lookup_max} tokens"

    def build(
        self, target: TargetModel, own: OwnModel | None = None, *, judge: DraftJudge | None = None
    ) -> NgramDrafter:
        """Build the drafter; the first one on a machine compiles it."""
        del target, own, judge  # it reads only tokens, and drafts them all at once
        return NgramDrafter(
            self.num_speculative_tokens, self.prompt_lookup_min, self.prompt_lookup_max
        )
