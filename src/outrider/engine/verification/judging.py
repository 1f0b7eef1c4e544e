"""What the rules share: greedy and random sequences judged apart, and the answer put together."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import Sampling, draw, greedy_choices
from outrider.engine.verification.base import Verdict
from outrider.engine.verification.random_rows import row_distributions
from outrider.engine.verification.rows import DraftRows


class Judgement(NamedTuple):
    """Accepted lengths int64 [B] and bonus tokens int32 [B]."""

    accepted: NDArray[np.int64]
    bonus: NDArray[np.int32]


Judge = Callable[[torch.Tensor, Draft, Sequence[Sampling]], Judgement]
"""Takes what `Verifier.verify` takes, for sequences that are all greedy or all random."""


def judge(
    logits: torch.Tensor,
    draft: Draft,
    sampling: Sequence[Sampling],
    *,
    greedy: Judge,
    random: Judge,
) -> Verdict:
    """Judge the greedy sequences of a batch by one rule and the others by another."""
    batch = len(sampling)
    rows = sum(draft.lengths.tolist()) + batch
    assert len(logits) == rows, "one row per drafted token and one more"
    greedy_ones = [each.parameters.greedy for each in sampling]
    if all(greedy_ones) or not any(greedy_ones):
        judgement = (greedy if greedy_ones[0] else random)(logits, draft, sampling)
    else:
        judgement = _judge_apart(logits, draft, sampling, np.array(greedy_ones), greedy, random)
    runs = np.empty((batch, draft.tokens.shape[1] + 1), np.int32)
    runs[:, :-1] = draft.tokens
    accepted, emitted = judgement.accepted.tolist(), []
    for run, count, bonus in zip(runs, accepted, judgement.bonus.tolist(), strict=True):
        run[count] = bonus
        emitted.append(run[: count + 1])
    return Verdict(judgement.accepted, emitted)


def _judge_apart(
    logits: torch.Tensor,
    draft: Draft,
    sampling: Sequence[Sampling],
    is_greedy: NDArray[np.bool_],
    greedy: Judge,
    random: Judge,
) -> Judgement:
    judgement = Judgement(np.zeros(len(sampling), np.int64), np.zeros(len(sampling), np.int32))
    for members, judge_them in ((is_greedy, greedy), (~is_greedy, random)):
        rows = torch.from_numpy(members.repeat(draft.lengths + 1)).to(logits.device)
        chosen = [each for each, member in zip(sampling, members, strict=True) if member]
        of_members = judge_them(logits[rows], draft.select(members), chosen)
        judgement.accepted[members], judgement.bonus[members] = of_members
    return judgement


def judge_greedy(logits: torch.Tensor, draft: Draft, _: Sequence[Sampling]) -> Judgement:
    """Accept as long as each drafted token is the target's own choice; no randomness.

    In plain Python: between two passes caches hold weights alone, and what runs a few times there
    is as fast as its code is short.
    """
    target = greedy_choices(logits).tolist()
    accepted, bonus = list[int](), list[int]()
    first = 0
    for tokens, length in zip(draft.tokens.tolist(), draft.lengths.tolist(), strict=True):
        right = 0
        while right < length and tokens[right] == target[first + right]:
            right += 1
        accepted.append(right)
        bonus.append(target[first + right])
        first += length + 1
    return Judgement(np.array(accepted, np.int64), np.array(bonus, np.int32))


def judge_drawn(logits: torch.Tensor, draft: Draft, sampling: Sequence[Sampling]) -> Judgement:
    """Draw each row's token as plain decoding would, and accept where it is the drafted one.

    For drafts proposed with certainty: token d is accepted with probability p(d), and the token
    after a rejection follows p without d, which is all that rejection sampling asks. Since every
    output token uses the number that plain decoding would draw it by, the text is the same with
    and without speculation, seed by seed.
    """
    rows = DraftRows.of(draft)
    counts = (draft.lengths + 1).tolist()
    u = torch.cat([each.peek(count) for each, count in zip(sampling, counts, strict=True)])
    p = row_distributions(logits, draft, sampling)
    drawn = draw(p, u.to(p.device)).to(torch.int32).cpu().numpy()
    accepted = rows.accepted(drawn == rows.drafted)
    for each, count in zip(sampling, accepted.tolist(), strict=True):
        each.use(count + 1)
    return Judgement(accepted, drawn[rows.first + accepted])
