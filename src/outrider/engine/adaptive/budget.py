"""The number of drafted tokens to verify that gives most tokens per second.

Follows adaptive verification in vLLM 0.33, but for two things: the confidences are those of this
step, and what is trimmed does not count as drafted.
"""

import numpy as np
from numpy.typing import NDArray

from outrider.engine.adaptive.cost_curve import CostCurve


def survivals(confidence: NDArray[np.float64], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return s [B, K], the chance that a draft is accepted up to each position; 0 beyond its end.

    `confidence` [B, K] is c, the chance that a position is accepted given those before it, and
    `lengths` [B] how many tokens were drafted.
    """
    k = confidence.shape[1]
    present = np.arange(k) < lengths[:, None]
    chance: NDArray[np.float64] = np.where(present, confidence.clip(0, 1), 0.0).cumprod(axis=1)
    return chance


def verified_lengths(
    survival: NDArray[np.float64],
    *,
    plain_rows: int,
    sampling: int,
    spent_s: float,
    cost: CostCurve,
    in_order: bool = False,
) -> NDArray[np.int64]:
    """Return how many drafted tokens of each request to verify, [B], each a prefix of its draft.

    `survival` is s [B, K], which never rises along a draft. The step has `plain_rows` rows without
    any draft, of which `sampling` give a token, and `spent_s` seconds were spent before it. With
    the b most promising tokens it gives (sampling + the sum of their s) tokens in (spent + cost)
    seconds; b is the smallest of those with the highest rate.

    `in_order` takes tokens only as long as each raises the rate, which gives up a little where a
    larger block of rows costs no more. Drafts drawn from a q need it: what follows a drawn token
    depends on it, and must not decide whether it is verified.
    """
    order = np.argsort(-survival, axis=None, kind="stable")
    promised = survival.ravel()[order]
    promised = promised[promised > 0]
    tokens = sampling + np.concatenate(([0.0], promised.cumsum()))
    seconds = spent_s + cost.cost_s(plain_rows + np.arange(len(tokens)))
    rate = tokens / seconds
    if in_order:
        falls = np.flatnonzero(np.diff(rate) <= 0)
        best = int(falls[0]) if len(falls) else len(rate) - 1
    else:
        best = int(rate.argmax())
    # A stable order takes a position before those after it, which promise no more.
    chosen = np.zeros(survival.size, np.int64)
    chosen[order[:best]] = 1
    lengths: NDArray[np.int64] = chosen.reshape(survival.shape).sum(axis=1)
    return lengths
