"""Lossless verification: exact match at temperature 0, rejection sampling above."""

from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import Sampling, draw, greedy_tokens, probabilities
from outrider.engine.verification.base import Verdict
from outrider.engine.verification.rejection import accepts, residual
from outrider.engine.verification.rows import DraftRows


class StandardVerifier:
    """Emits exactly what plain decoding would: the same tokens, or the same distribution.

    A greedy sequence uses no randomness. Any other draws as many uniforms as it has rows,
    drafted + 1, whatever is accepted: one to test each drafted token, then one for the bonus
    token.
    """

    name: ClassVar[str] = "standard"

    def verify(self, logits: torch.Tensor, draft: Draft, sampling: list[Sampling]) -> Verdict:
        """Judge `draft` by `logits` [sum(lengths + 1), V], one `sampling` per sequence."""
        batch = len(sampling)
        assert len(logits) == draft.lengths.sum() + batch, "one row per drafted token and one more"
        greedy = np.fromiter((each.parameters.greedy for each in sampling), np.bool_, batch)
        accepted = np.zeros(batch, np.int64)
        bonus = np.zeros(batch, np.int32)
        for members, judge in ((greedy, _judge_greedy), (~greedy, _judge_random)):
            if members.all():
                accepted, bonus = judge(logits, draft, sampling)
            elif members.any():
                rows = torch.from_numpy(members.repeat(draft.lengths + 1)).to(logits.device)
                chosen = [each for each, member in zip(sampling, members, strict=True) if member]
                accepted[members], bonus[members] = judge(
                    logits[rows], draft.select(members), chosen
                )
        emitted = [
            np.append(tokens[:count], last)
            for tokens, count, last in zip(draft.tokens, accepted, bonus, strict=True)
        ]
        return Verdict(accepted, emitted)


class _Judgement(NamedTuple):
    """Accepted lengths [B] and bonus tokens [B]."""

    accepted: NDArray[np.int64]
    bonus: NDArray[np.int32]


def _judge_greedy(logits: torch.Tensor, draft: Draft, _: list[Sampling]) -> _Judgement:
    rows = DraftRows.of(draft)
    target = greedy_tokens(logits).to(torch.int32).cpu().numpy()
    accepted = rows.accepted(target == rows.drafted)
    return _Judgement(accepted, target[rows.first + accepted])


def _judge_random(logits: torch.Tensor, draft: Draft, sampling: list[Sampling]) -> _Judgement:
    rows = DraftRows.of(draft)
    device = logits.device
    temperature = np.array([each.parameters.temperature for each in sampling], np.float32)
    p = probabilities(logits, torch.from_numpy(temperature.repeat(draft.lengths + 1)))
    q = None if draft.probabilities is None else rows.flatten(draft.probabilities)
    drafted = torch.from_numpy(rows.drafted).to(device, torch.int64)
    counts = (draft.lengths + 1).tolist()
    u = torch.cat([each.uniforms(count) for each, count in zip(sampling, counts, strict=True)]).to(
        device
    )

    accepted = rows.accepted(accepts(p, q, drafted, u).cpu().numpy())
    stop = torch.from_numpy(rows.first + accepted).to(device)
    last = torch.from_numpy(rows.first + draft.lengths).to(device)
    weights = residual(p[stop], None if q is None else q[stop], drafted[stop])
    bonus = draw(weights, u[last]).to(torch.int32).cpu().numpy()
    return _Judgement(accepted, bonus)
