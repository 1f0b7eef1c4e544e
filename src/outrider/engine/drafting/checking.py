"""Whether what a drafter returned can be verified at all."""

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.drafting.draft import Draft

NORMALISATION_TOLERANCE = 1e-3
"""How far a sum of q may be from 1: float32 over a large vocabulary stays well within it."""


def check(draft: Draft, limit: NDArray[np.int64], vocab_size: int) -> list[tuple[int, str]]:
    """Return (row, reason) for each of the B requests whose draft is nonsense, one reason each.

    `limit` is int64 [B], the most tokens that each may have. Run it on what a drafter returns,
    before the target sees it: an id outside the vocabulary has no embedding, and a q that the
    tokens were not drawn from changes the output's distribution. A draft of the wrong shape is
    nobody's: all rows have it as their reason. Those named are left out, see `Draft.without`.
    """
    batch = len(limit)
    if wrong := _wrong_shape(draft, batch, vocab_size):
        return [(row, wrong) for row in range(batch)]
    if not draft.lengths.any():
        return []
    reasons = _wrong_tokens(draft, limit, vocab_size)
    if draft.probabilities is not None:
        reasons = _wrong_q(draft, draft.probabilities, skip=reasons) | reasons
    return sorted(reasons.items())


def _wrong_shape(draft: Draft, batch: int, vocab_size: int) -> str | None:
    tokens, lengths, q = draft.tokens, draft.lengths, draft.probabilities
    if tokens.ndim != 2 or len(tokens) != batch or lengths.shape != (batch,):  # noqa: PLR2004
        return (
            f"the drafter returned tokens {list(tokens.shape)} and lengths {list(lengths.shape)} "
            f"for {batch} requests"
        )
    if q is not None and q.shape != (*tokens.shape, vocab_size):
        return (
            f"the drafter returned probabilities {list(q.shape)} "
            f"for tokens {list(tokens.shape)} and {vocab_size} token ids"
        )
    if draft.log_odds is not None and draft.log_odds.shape != tokens.shape:
        return (
            f"the drafter returned log-odds {list(draft.log_odds.shape)} "
            f"for tokens {list(tokens.shape)}"
        )
    matched = draft.matched_tokens
    if matched is not None and matched.shape != (batch,):
        return f"the drafter returned lengths of matches {list(matched.shape)} for {batch} requests"
    return None


def _wrong_tokens(draft: Draft, limit: NDArray[np.int64], vocab_size: int) -> dict[int, str]:
    room = draft.tokens.shape[1]
    drafts = zip(draft.tokens.tolist(), draft.lengths.tolist(), limit.tolist(), strict=True)
    reasons: dict[int, str] = {}
    for row, (tokens, length, limited) in enumerate(drafts):
        most = min(limited, room)
        if not 0 <= length <= most:
            reasons[row] = (
                f"the drafter says that it proposed {length} tokens where 0 to {most} fit"
            )
            continue
        unknown = [token for token in tokens[:length] if not 0 <= token < vocab_size]
        if unknown:
            reasons[row] = (
                f"the drafter proposed token id {unknown[0]} to a target with ids"
                f" 0 to {vocab_size - 1}"
            )
    return reasons


def _wrong_q(draft: Draft, q: torch.Tensor, skip: dict[int, str]) -> dict[int, str]:
    lengths = draft.lengths.copy()
    lengths[list(skip)] = 0
    rows, positions = (np.arange(draft.tokens.shape[1]) < lengths[:, None]).nonzero()
    if not len(rows):
        return {}
    drawn_from = q[torch.from_numpy(rows).to(q.device), torch.from_numpy(positions).to(q.device)]
    tokens = torch.from_numpy(draft.tokens[rows, positions]).to(q.device, torch.int64)
    figures = torch.stack(
        [
            drawn_from.min(dim=-1).values.double(),
            drawn_from.sum(dim=-1, dtype=torch.float64),
            drawn_from.gather(-1, tokens.unsqueeze(-1)).squeeze(-1).double(),
        ],
        dim=-1,
    )
    reasons: dict[int, str] = {}
    for row, (least, total, q_d) in zip(rows.tolist(), figures.tolist(), strict=True):
        if reason := _wrong_distribution(least, total, q_d):
            reasons.setdefault(row, reason)
    return reasons


def _wrong_distribution(least: float, total: float, q_d: float) -> str | None:
    """Why a q with this minimum, sum and share of the drafted token is none; NaN fails too."""
    if not least >= 0:
        return f"the drafter gave a draft probability of {least}"
    if not abs(total - 1) <= NORMALISATION_TOLERANCE:
        return f"the drafter gave draft probabilities that sum to {total:.4g} instead of 1"
    if q_d == 0:
        return "the drafter proposed a token that has probability 0 in what it was drawn from"
    return None
