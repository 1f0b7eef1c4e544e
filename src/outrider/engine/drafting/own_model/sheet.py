"""A draft in the making."""

import numpy as np
import torch

from outrider.engine.drafting.base import DraftJudge
from outrider.engine.drafting.draft import Draft
from outrider.engine.drafting.own_model.model import OwnModel, Turn
from outrider.engine.drafting.sampling import DraftSampleMethod, draft_tokens, top_log_odds
from outrider.engine.likeliest import known
from outrider.engine.sampling import greedy_choices, unusable_rows


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
        # Lists, which take less time than arrays between passes, when caches hold weights alone.
        self._tokens = [[-1] * width for _ in range(batch)]
        self._log_odds = [[0.0] * width for _ in range(batch)] if confident else None
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
        likeliest = greedy_choices(logits)
        if known(logits) is None and (broken := unusable_rows(logits, likeliest)).any():
            kept = np.flatnonzero(~broken).tolist()
            turns, positions = [turns[i] for i in kept], [positions[i] for i in kept]
            logits, likeliest = logits[kept], likeliest[kept]
        rows = [turn.row for turn in turns]
        sampling = [turn.sampling for turn in turns]
        chosen = likeliest
        if self._q is not None:
            best = torch.from_numpy(likeliest).to(logits.device)
            drafted = draft_tokens(logits, sampling, self._method, greedy=best)
            chosen, q = drafted.tokens.cpu().numpy(), drafted.q
            self._q = self._q.to(logits.device)
            self._q[rows, positions] = _one_hot(drafted.tokens, logits) if q is None else q
        tokens = self._own.in_target(chosen)
        for row, position, token in zip(rows, positions, tokens, strict=True):
            self._tokens[row][position] = token
        if self._log_odds is not None:
            odds = top_log_odds(logits, likeliest, sampling).tolist()
            for row, position, of_token in zip(rows, positions, odds, strict=True):
                self._log_odds[row][position] = of_token
        return list(zip(turns, tokens, strict=True))

    def worth_going_on(
        self, chosen: list[tuple[Turn, int]], position: int, judge: DraftJudge
    ) -> list[tuple[Turn, int]]:
        """Return those of `chosen` that the `judge` goes on with; each may get `position`."""
        assert self._log_odds is not None, "a judge goes by them"
        drafted = [position - tokens[:position].count(-1) for tokens in self._tokens]
        most = drafted.copy()
        for turn, _ in chosen:
            most[turn.row] = turn.length
        further = judge.going_on(
            np.array([odds[:position] for odds in self._log_odds]),
            np.array(drafted),
            np.array(most),
        ).tolist()
        return [each for each in chosen if further[each[0].row]]

    def draft(self) -> Draft:
        """Return what was chosen, each sequence's up to the first position without a token."""
        width = len(self._tokens[0]) if self._tokens else 0
        lengths = [tokens.index(-1) if -1 in tokens else width for tokens in self._tokens]
        for tokens, length in zip(self._tokens, lengths, strict=True):
            tokens[length:] = [-1] * (width - length)
        return Draft(
            np.array(self._tokens, np.int32).reshape(len(lengths), width),
            np.array(lengths, np.int64),
            self._q,
            None
            if self._log_odds is None
            else np.array(self._log_odds).reshape(len(lengths), width),
        )


def _one_hot(tokens: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.one_hot(tokens, logits.shape[-1]).to(logits.dtype)
