"""The number of drafted tokens to verify that gives most tokens per second.

Follows adaptive verification in vLLM 0.33, but for two things: the confidences are those of this
step, and what is trimmed does not count as drafted. Compiled, since it runs between any two steps,
when the caches hold nothing but weights.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.engine.adaptive.acceptance_estimator import AcceptanceEstimator, expected_confidence
from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.compiling import compiled


class Budget(NamedTuple):
    """How many drafted tokens of each request are verified, `lengths` [B], each a prefix.

    `promised` [K] is, for each position, the sum of the chances of those among them that they are
    accepted; `verified` [K] is their number.
    """

    lengths: NDArray[np.int64]
    promised: NDArray[np.float64]
    verified: NDArray[np.int64]


def best_budget(
    log_odds: NDArray[np.float64],
    drafted: NDArray[np.int64],
    estimate: AcceptanceEstimator,
    *,
    plain_rows: int,
    sampling: int,
    spent_s: float,
    cost: CostCurve,
    in_order: bool = False,
) -> Budget:
    """Return how much of each draft to verify.

    By the `estimate`, `log_odds` [B, K] give c, the chance that a position is accepted given those
    before it, and the products s of them along a draft are the chances that it is accepted that
    far; `drafted` [B] tokens there are. The step has `plain_rows` rows without any draft, of which
    `sampling` give a token, and `spent_s` seconds were spent before it. With the b most promising
    tokens it gives (sampling + the sum of their s) tokens in (spent + cost) seconds; b is the
    smallest of those with the highest rate. NaN promises nothing, and nor does what follows it.

    `in_order` takes tokens only as long as each raises the rate, which gives up a little where a
    larger block of rows costs no more. Drafts drawn from a q need it: what follows a drawn token
    depends on it, and must not decide whether it is verified.
    """
    return Budget(
        *_best(
            log_odds,
            estimate.slope,
            estimate.intercepts,
            drafted,
            plain_rows,
            sampling,
            float(spent_s),
            cost.table,
            cost.further_row_s,
            in_order,
        )
    )


@compiled()
def _best(  # noqa: PLR0917  to find the types of a tuple takes numba as long as the rest
    log_odds: Any,
    slope: float,
    intercepts: Any,
    drafted: Any,
    plain_rows: int,
    sampling: int,
    spent_s: float,
    table: Any,
    further_row_s: float,
    in_order: bool,  # noqa: FBT001
) -> Any:
    batch, k = log_odds.shape
    survival = np.empty((batch, k))
    survivals(expected_confidence(log_odds, slope, intercepts), drafted, survival)
    lengths = np.zeros(batch, np.int64)
    step = (plain_rows, sampling, spent_s)
    _choose(survival, step, table, further_row_s, in_order, lengths)
    promised, verified = np.zeros(k), np.zeros(k, np.int64)
    for b in range(batch):
        for j in range(lengths[b]):
            promised[j] += survival[b, j]
            verified[j] += 1
    return lengths, promised, verified


@compiled(within=True)
def survivals(confidence: Any, drafted: Any, survival: Any) -> None:
    """s [B, K], the products of c along a draft, into `survival`; 0 beyond its end and from NaN."""
    batch, k = confidence.shape
    for b in range(batch):
        chance = 1.0
        for j in range(k):
            c = confidence[b, j]
            chance *= c if j < drafted[b] and c >= 0 else 0.0
            survival[b, j] = chance


@compiled(within=True)
def _choose(
    survival: Any,
    step: Any,
    table: Any,
    further_row_s: Any,
    in_order: bool,  # noqa: FBT001
    lengths: Any,
) -> None:
    """The best lengths into `lengths`, 0 before: the most promising token is taken each time."""
    batch, k = survival.shape
    taken = np.zeros(batch, np.int64)
    plain_rows, sampling, spent_s = step
    tokens, rows = float(sampling), plain_rows
    best = 0.0
    while True:
        rate = tokens / (spent_s + step_seconds(rows, table, further_row_s))
        if rate > best:
            best = rate
            lengths[:] = taken
        elif in_order:
            return
        chance, place = most_promising(survival, taken, k)
        if place < 0:
            return
        taken[place] += 1
        tokens += chance
        rows += 1


@compiled(within=True)
def most_promising(survival: Any, taken: Any, longest: int) -> Any:
    """The s of the most promising token that is not `taken`, and its request; 0 and -1 if none is.

    Only the first `longest` of each request are looked at. Since s never rises along a draft, it is
    the next one of some request.
    """
    chance, place = 0.0, -1
    for b in range(len(taken)):
        if taken[b] < longest and survival[b, taken[b]] > chance:
            chance, place = survival[b, taken[b]], b
    return chance, place


@compiled(within=True)
def step_seconds(rows: int, table: Any, further_row_s: float) -> Any:
    """See `CostCurve.step_s`."""
    last = len(table) - 1
    return table[min(rows, last)] + further_row_s * max(rows - last, 0)
