"""What every drafting method offers, its settings decided."""

from collections.abc import Mapping
from typing import ClassVar, Protocol, Self

from outrider.engine.drafting.base import Drafter, DraftJudge
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.models.base import TargetModel
from outrider.server.speculation.config import SpeculativeConfig
from outrider.server.speculation.target_facts import TargetFacts


class DraftingMethod(Protocol):
    """A method, ready to be built; a new one is one file and one line in the registry."""

    name: ClassVar[str]
    keys: ClassVar[frozenset[str]]
    """The keys of `SpeculativeConfig` that mean something to this method and not to all."""

    @property
    def num_speculative_tokens(self) -> int:
        """K, the most tokens in a draft."""

    @property
    def checkpoint(self) -> str | None:
        """Where the draft weights are, None for a method without any."""

    @property
    def settings(self) -> Mapping[str, object]:
        """What its `keys` resolved to."""

    @classmethod
    def resolve(cls, config: SpeculativeConfig, target: TargetFacts) -> Self:
        """Decide what `config` leaves open; InvalidSetting for what the method cannot do."""

    def describe(self) -> str:
        """Say in a few words how it drafts, K aside."""

    def build(
        self, target: TargetModel, own: OwnModel | None, *, judge: DraftJudge | None = None
    ) -> Drafter:
        """Build the drafter; `own` is the model of `checkpoint`, None for a method without any.

        With a `judge` it tells how sure it is of its tokens, where it can, and asks which drafts to
        go on with, if it makes them token by token.
        """
