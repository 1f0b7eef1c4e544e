"""Lossless verification of a draft as a whole: Sun et al. 2024, arXiv 2403.10444.

The paper's M_b is the target's p and its M_s the draft's q. With x_1 … x_D drafted and w_0 = 1,

    w_i = min(1, w_{i-1} p(x_i) / q(x_i))            the paper's p_i, the weight of a prefix
    S_i = sum over x of max(w_i p(x) - q(x), 0)      at the position after x_i
    h_i = S_i / (S_i + 1 - w_i), and h_D = w_D
    accepted = the largest i with u_i < h_i, else 0

A later token can thus save an earlier one: prefixes are accepted at least as often as token by
token, and more often wherever a ratio above 1 makes up for one below. For point masses the two
rules accept equally often.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import Sampling
from outrider.engine.verification.base import Verdict
from outrider.engine.verification.judging import Judgement, judge, judge_drawn, judge_greedy
from outrider.engine.verification.random_rows import RandomRows
from outrider.engine.verification.rejection import left_over, of_drafted


class BlockVerifier:
    """Emits exactly what plain decoding would, and accepts no fewer tokens than `standard`.

    Greedy sequences are judged as by `standard`, which nothing lossless can beat there.
    """

    name: ClassVar[str] = "block"
    lossless: ClassVar[bool] = True

    def verify(self, logits: torch.Tensor, draft: Draft, sampling: Sequence[Sampling]) -> Verdict:
        """Judge `draft` by `logits` [sum(lengths + 1), V], one `sampling` per sequence."""
        random = judge_drawn if draft.probabilities is None else _judge_random
        return judge(logits, draft, sampling, greedy=judge_greedy, random=random)


def prefix_weights(rows: RandomRows) -> torch.Tensor:
    """Return w float64 [R]; a sequence's row i has the weight of its first i drafted tokens."""
    p_d, q_d = of_drafted(rows.p, rows.q, rows.drafted)
    ratios = rows.layout.spread(torch.where(q_d > 0, p_d / q_d, 0.0))
    weights = torch.ones_like(ratios)
    for i in range(ratios.shape[1] - 1):
        weights[:, i + 1] = (weights[:, i] * ratios[:, i]).clamp(max=1)
    return rows.layout.gather(weights)


def prefix_acceptance(rows: RandomRows, weights: torch.Tensor) -> torch.Tensor:
    """Return h float64 [R] for prefixes of the `weights` [R], row i being a sequence's h_i.

    h_0 means nothing: the empty prefix is what remains when no other is accepted.
    """
    scaled = rows.p * weights.unsqueeze(-1).float()
    rest = left_over(scaled, rows.q, rows.drafted).sum(dim=-1, dtype=torch.float64)
    denominator = rest + 1 - weights
    inner = torch.where(denominator > 0, rest / denominator, 1.0)
    return torch.where(rows.drafted >= 0, inner, weights)


def _judge_random(logits: torch.Tensor, draft: Draft, sampling: Sequence[Sampling]) -> Judgement:
    rows = RandomRows.of(logits, draft, sampling)
    weights = prefix_weights(rows)
    h = rows.layout.spread(prefix_acceptance(rows, weights))
    u = rows.layout.spread(rows.u)
    # The row before a prefix's last token is the one that judges it, and holds its uniform.
    passed = (u[:, :-1] < h[:, 1:]).cpu().numpy()
    lengths = np.arange(1, passed.shape[1] + 1)
    accepted = np.where(passed, lengths, 0).max(axis=1, initial=0)
    return Judgement(accepted, rows.bonus(accepted, weights))
