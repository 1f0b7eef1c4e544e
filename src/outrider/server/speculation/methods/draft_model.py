"""A draft model, as a user configures it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from outrider.engine.drafting.base import Drafter, DraftJudge
from outrider.engine.drafting.draft_model import ModelDrafter
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.drafting.parallel_draft_model import ParallelModelDrafter
from outrider.engine.drafting.sampling import DraftSampleMethod
from outrider.engine.models.base import TargetModel
from outrider.errors import InvalidSetting
from outrider.server.speculation.checkpoint import draft_checkpoint
from outrider.server.speculation.config import SpeculativeConfig
from outrider.server.speculation.draft_length import draft_length
from outrider.server.speculation.target_facts import TargetFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftModelMethod:
    """A second model that writes ahead: token by token, or a whole draft at once (PARD).

    With `use_heterogeneous_vocab` (TLI) its tokenizer may be another than the target's.
    """

    name: ClassVar[str] = "draft_model"
    keys: ClassVar[frozenset[str]] = frozenset(
        {"draft_sample_method", "max_model_len", "parallel_drafting", "use_heterogeneous_vocab"}
    )

    num_speculative_tokens: int
    checkpoint: str
    draft_sample_method: DraftSampleMethod
    max_model_len: int | None
    parallel_drafting: bool
    use_heterogeneous_vocab: bool

    @classmethod
    def resolve(cls, config: SpeculativeConfig, target: TargetFacts) -> Self:
        """Take the settings; what depends on the draft's own config is judged when it is opened."""
        checkpoint = draft_checkpoint(cls.name, config, target)
        assert checkpoint is not None, "the method drafts with a model"
        if config.use_heterogeneous_vocab and config.draft_sample_method != "greedy":
            raise InvalidSetting(
                f"draft_sample_method {config.draft_sample_method} with use_heterogeneous_vocab",
                "greedy drafts where vocabularies differ",
                "drop one of the two",
            )
        return cls(
            num_speculative_tokens=draft_length(cls.name, config),
            checkpoint=checkpoint,
            draft_sample_method=config.draft_sample_method,
            max_model_len=config.max_model_len,
            parallel_drafting=config.parallel_drafting,
            use_heterogeneous_vocab=config.use_heterogeneous_vocab,
        )

    @property
    def settings(self) -> Mapping[str, object]:
        """How it drafts."""
        return {key: getattr(self, key) for key in sorted(self.keys)}

    def describe(self) -> str:
        """Say how tokens are chosen, and what is unusual."""
        parts = [f"{self.draft_sample_method} drafts"]
        if self.parallel_drafting:
            parts.append("all tokens of a draft at once")
        if self.use_heterogeneous_vocab:
            parts.append("shared tokens only")
        return ", ".join(parts)

    def build(
        self, target: TargetModel, own: OwnModel | None, *, judge: DraftJudge | None = None
    ) -> Drafter:
        """Build the drafter on its loaded model."""
        del target
        assert own is not None, "the checkpoint was opened and loaded"
        if self.parallel_drafting:
            confident = judge is not None
            return ParallelModelDrafter(own, self.draft_sample_method, confident=confident)
        return ModelDrafter(own, self.draft_sample_method, judge=judge)
