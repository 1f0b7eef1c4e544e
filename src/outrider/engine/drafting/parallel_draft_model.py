"""A draft model that was trained to fill in masks, and so writes a whole draft in one pass (PARD).

An et al. 2025, arXiv 2504.18583. After the last token t of a sequence come K - 1 mask tokens, at
the positions that follow. The row of t predicts the first drafted token, and each mask the next.
"""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from outrider.engine.drafting.draft import Draft
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.drafting.own_model.sheet import DraftSheet
from outrider.engine.drafting.sampling import DraftSampleMethod, compile_log_odds
from outrider.engine.sequence import Sequence
from outrider.engine.verification.base import Verdict


class ParallelModelDrafter:
    """Drafts as `ModelDrafter` does, but all tokens of a draft at once.

    Each is chosen from, or drawn from, what the model says without knowing those before it. Masks
    leave nothing behind: what is accepted is read as the token that it is.
    """

    name: ClassVar[str] = "draft_model"

    def __init__(
        self, own: OwnModel, method: DraftSampleMethod = "greedy", *, confident: bool = True
    ) -> None:
        self.own = own
        self._method: DraftSampleMethod = method
        self._confident = confident
        if confident:
            compile_log_odds()

    def propose(self, batch: list[Sequence], limit: NDArray[np.int64]) -> Draft:
        """Draft for each sequence at most `limit` tokens."""
        turns, logits = self.own.read(self.own.turns(batch, limit), masks=True)
        sheet = DraftSheet(len(batch), turns, self.own, self._method, confident=self._confident)
        each_row = [(turn, position) for turn in turns for position in range(turn.length)]
        sheet.choose([turn for turn, _ in each_row], [at for _, at in each_row], logits)
        return sheet.draft()

    def observe(self, batch: list[Sequence], verdict: Verdict) -> None:
        """Learn nothing: what was accepted shows in the sequences."""

    def forget(self, sequence: Sequence) -> None:
        """Free what its cache holds of `sequence`."""
        self.own.forget(sequence)
