"""A smaller model that writes ahead of the target, token by token."""

from itertools import count
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from outrider.engine.drafting.base import DraftJudge
from outrider.engine.drafting.draft import Draft
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.drafting.own_model.sheet import DraftSheet
from outrider.engine.drafting.sampling import DraftSampleMethod, compile_log_odds
from outrider.engine.sequence import Sequence
from outrider.engine.verification.base import Verdict


class ModelDrafter:
    """Drafts what a model of its own would say: one pass for what is new, one for each token after.

    `method` "greedy" takes its likeliest tokens; "probabilistic" draws them at the temperature of
    the request, which is accepted more often where the target is drawn from too. A sequence gets no
    draft in a step in which the model has not come to its end yet or its cache has no room.

    With a `judge` there are log-odds, what the model makes of its own drafts, which take a pass
    over the vocabulary for each token. It is asked after each one which drafts to go on with,
    unless they are drawn: what was drawn for one request would decide how long the draft of another
    becomes, and by way of what that leaves to verify, whether it is verified itself.
    """

    name: ClassVar[str] = "draft_model"

    def __init__(
        self,
        own: OwnModel,
        method: DraftSampleMethod = "greedy",
        *,
        judge: DraftJudge | None = None,
    ) -> None:
        self.own = own
        self._method: DraftSampleMethod = method
        self._judge = judge
        if judge is not None:
            compile_log_odds()

    def propose(self, batch: list[Sequence], limit: NDArray[np.int64]) -> Draft:
        """Draft for each sequence at most `limit` tokens."""
        turns, logits = self.own.read(self.own.turns(batch, limit))
        confident = self._judge is not None
        sheet = DraftSheet(len(batch), turns, self.own, self._method, confident=confident)
        for position in count(1):
            chosen = sheet.choose(turns, [position - 1] * len(turns), logits)
            going_on = [(turn, token) for turn, token in chosen if turn.length > position]
            if going_on and self._judge is not None and not sheet.drawn:
                going_on = sheet.worth_going_on(going_on, position, self._judge)
            if not going_on:
                break
            turns = [turn for turn, _ in going_on]
            logits = self.own.go_on(turns, [token for _, token in going_on])
        return sheet.draft()

    def observe(self, batch: list[Sequence], verdict: Verdict) -> None:
        """Learn nothing: what was accepted shows in the sequences."""

    def forget(self, sequence: Sequence) -> None:
        """Free what its cache holds of `sequence`."""
        self.own.forget(sequence)
