"""A draft in the making."""

import numpy as np
import torch

from outrider.engine.drafting.base import DraftJudge
from outrider.engine.drafting.draft import Draft
from outrider.engine.drafting.own_model.model import OwnModel, Turn
from outrider.engine.drafting.sampling import DraftSampleMethod, draft_tokens, top_log_odds
from outrider.engine.sampling import greedy_tokens, unusable_rows


class DraftSheet:
    """Takes the tokens of a draft for a batch of B, in any order, and in the end is the `draft`.

    `turns` are those of the sequences that get one, from `own`. It has a q where the method is
    probabilistic and any of them is not greedy, and log-odds where it is to be `confident`.
    """

    def __init__(
        self,
        batch: int,
        turns: list[Turn],
        own: OwnModel,
        method: DraftSampleMethod,
        *,
        confident: bool,
    ) -> None:
        self._own = own
        self._method: DraftSampleMethod = method
        width = max((turn.length for turn in turns), default=0)
        self._tokens = np.full((batch, width), -1, np.int32)
        self._log_odds = np.zeros((batch, width)) if confident else None
        self._q: torch.Tensor | None = None
        if method == "probabilistic" and not all(t.sampling.parameters.greedy for t in turns):
            self._q = torch.zeros(batch, width, own.model.config.vocab_size)

    @property
    def drawn(self) -> bool:
        """Whether any of the tokens are drawn from a q."""
        return self._q is not None

    def choose(
        self, turns: list[Turn], positions: list[int], logits: torch.Tensor
    ) -> list[tuple[Turn, int]]:
        """Choose by each row of `logits` [n, S] the token at that position of that turn's draft.

        Return what was chosen: a draft ends where the logits of a broken model let nothing be.
        """
        greedy = greedy_tokens(logits)
        broken = unusable_rows(logits, greedy)
        if broken.any():
            kept = (~broken).nonzero().squeeze(-1).tolist()
            turns, positions = [turns[i] for i in kept], [positions[i] for i in kept]
            logits, greedy = logits[kept], greedy[kept]
        rows = [turn.row for turn in turns]
        sampling = [turn.sampling for turn in turns]
        drafted = draft_tokens(logits, sampling, self._method, greedy=greedy)
        tokens = self._own.in_target(drafted.tokens)
        self._tokens[rows, positions] = tokens
        if self._log_odds is not None:
            self._log_odds[rows, positions] = top_log_odds(logits, drafted.likeliest, sampling)
        if self._q is not None:
            self._q = self._q.to(logits.device)
            q = drafted.q
            self._q[rows, positions] = _one_hot(drafted.tokens, logits) if q is None else q
        return list(zip(turns, tokens, strict=True))

    def worth_going_on(
        self, chosen: list[tuple[Turn, int]], position: int, judge: DraftJudge
    ) -> list[tuple[Turn, int]]:
        """Return those of `chosen` that the `judge` goes on with; each may get `position`."""
        drafted = (self._tokens[:, :position] >= 0).sum(axis=1)
        most = drafted.copy()
        for turn, _ in chosen:
            most[turn.row] = turn.length
        assert self._log_odds is not None, "a judge goes by them"
        further = judge.going_on(self._log_odds[:, :position], drafted, most)
        return [each for each in chosen if further[each[0].row]]

    def draft(self) -> Draft:
        """Return what was chosen, each sequence's up to the first position without a token."""
        lengths = np.logical_and.accumulate(self._tokens >= 0, axis=1).sum(axis=1)
        return Draft(self._tokens, lengths, self._q, self._log_odds).cut(lengths)


def _one_hot(tokens: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.one_hot(tokens, logits.shape[-1]).to(logits.dtype)
