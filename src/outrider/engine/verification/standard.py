"""Lossless verification token by token: Leviathan et al. 2023, arXiv 2211.17192."""

from collections.abc import Sequence
from typing import ClassVar

import torch

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import Sampling
from outrider.engine.verification.base import Verdict
from outrider.engine.verification.judging import Judgement, judge, judge_drawn, judge_greedy
from outrider.engine.verification.random_rows import RandomRows
from outrider.engine.verification.rejection import accepts


class StandardVerifier:
    """Emits exactly what plain decoding would: the same tokens, or the same distribution.

    A greedy sequence accepts what equals the target's choice, and any other, of a draft proposed
    with certainty, what equals the target's draw. Of a draft with a q each token is accepted with
    probability min(1, p / q), and after a rejection one is drawn from max(p - q, 0).
    """

    name: ClassVar[str] = "standard"
    lossless: ClassVar[bool] = True

    def verify(self, logits: torch.Tensor, draft: Draft, sampling: Sequence[Sampling]) -> Verdict:
        """Judge `draft` by `logits` [sum(lengths + 1), V], one `sampling` per sequence."""
        random = judge_drawn if draft.probabilities is None else _judge_random
        return judge(logits, draft, sampling, greedy=judge_greedy, random=random)


def _judge_random(logits: torch.Tensor, draft: Draft, sampling: Sequence[Sampling]) -> Judgement:
    rows = RandomRows.of(logits, draft, sampling)
    accept = accepts(rows.p, rows.q, rows.drafted, rows.u)
    accepted = rows.layout.accepted(accept.cpu().numpy())
    return Judgement(accepted, rows.bonus(accepted))
