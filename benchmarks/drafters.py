"""Drafters for benchmarks, by draft length."""

from collections.abc import Callable
from typing import Protocol

from outrider.engine.drafting.base import Drafter, DraftJudge
from outrider.engine.drafting.draft_model import ModelDrafter
from outrider.engine.drafting.ngram import NgramDrafter
from outrider.engine.models.base import TargetModel
from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.store import cache_directory
from outrider.server.serving import open_draft
from outrider.server.speculation.config import SpeculativeConfig
from outrider.server.speculation.opened_draft import ModelToPair
from outrider.server.speculation.resolving import resolve
from outrider.server.speculation.target_facts import TargetFacts


class MakeDrafter(Protocol):
    """Makes a drafter for drafts of up to `k` tokens."""

    def __call__(self, k: int, *, judge: DraftJudge | None) -> Drafter:
        """A `judge` says which drafts to go on with, where they are made token by token."""
        ...


MOST_ROWS = 2_048


def ngram(k: int, *, judge: DraftJudge | None) -> Drafter:
    """Looks the last 4 to 2 tokens up."""
    del judge  # it drafts all tokens at once
    return NgramDrafter(k, 2, 4)


def draft_model(
    name: str,
    target: TargetModel,
    side: ModelToPair,
    settings: ModelSettings,
    *,
    say: Callable[[str], None],
    watched: Callable[[TargetModel], TargetModel],
) -> MakeDrafter:
    """Load the draft model called `name` once; every drafter that is made has it to itself in turn.

    Prompts are read anew each time. `side` is the target's, `settings` are how it was loaded.
    Drafters run what `watched` makes of the model.
    """
    config = SpeculativeConfig(method="draft_model", model=name, num_speculative_tokens=1)
    opened = open_draft(resolve(config, TargetFacts(side.name)), side, cache_directory(), say=say)
    assert opened is not None, "the method has a checkpoint"
    own = opened.load(settings, target, max_rows=MOST_ROWS, prefix_caching=False)
    own.model = watched(own.model)

    def make(k: int, *, judge: DraftJudge | None) -> Drafter:
        del k  # each step asks for as much as it wants
        return ModelDrafter(own, judge=judge)

    return make
