"""Suffix decoding, as a user configures it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar, Self

from outrider.engine.drafting.base import DraftJudge
from outrider.engine.drafting.lookup.suffix_settings import SuffixSettings
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.drafting.suffix import SuffixDrafter
from outrider.engine.models.base import TargetModel
from outrider.server.speculation.checkpoint import draft_checkpoint
from outrider.server.speculation.config import SpeculativeConfig
from outrider.server.speculation.draft_length import draft_length
from outrider.server.speculation.target_facts import TargetFacts

_PREFIX = "suffix_decoding_"


@dataclass(frozen=True, slots=True)
class SuffixMethod:
    """Drafts what most often followed the same ending, in the request or in earlier answers."""

    name: ClassVar[str] = "suffix"
    keys: ClassVar[frozenset[str]] = frozenset(_PREFIX + name for name in asdict(SuffixSettings()))
    checkpoint: ClassVar[None] = None

    num_speculative_tokens: int
    suffix: SuffixSettings

    @classmethod
    def resolve(cls, config: SpeculativeConfig, target: TargetFacts) -> Self:
        """Take the settings as they are; K is the depth of the tree where it is not given."""
        draft_checkpoint(cls.name, config, target)
        given = {key.removeprefix(_PREFIX): getattr(config, key) for key in cls.keys}
        return cls(draft_length(cls.name, config), SuffixSettings(**given))

    @property
    def settings(self) -> Mapping[str, object]:
        """The four settings of suffix decoding."""
        return {_PREFIX + name: value for name, value in asdict(self.suffix).items()}

    def describe(self) -> str:
        """Say what it looks back on."""
        kept = self.suffix.max_cached_requests
        answers = f"the answers of the last {kept:,} requests" if kept else "no earlier answers"
        return f"a tree of {self.suffix.max_tree_depth} tokens' depth and {answers}"

    def build(
        self, target: TargetModel, own: OwnModel | None = None, *, judge: DraftJudge | None = None
    ) -> SuffixDrafter:
        """Build the drafter; the first one on a machine compiles it."""
        del target, own, judge  # it reads only tokens, and drafts them all at once
        return SuffixDrafter(self.num_speculative_tokens, self.suffix)
