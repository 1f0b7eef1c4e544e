"""How far to go on with drafts that are made token by token, as their tokens become known.

Whether one more token pays is a question of when to stop, as in SpecDec++ (Huang et al. 2024, arXiv
2405.19715), whose threshold on the chance that a draft is accepted so far is here what tokens and
time are worth to the whole batch.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from outrider.engine.adaptive.acceptance_estimator import AcceptanceEstimator, expected_confidence
from outrider.engine.adaptive.budget import most_promising, step_seconds, survivals
from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.compiling import compiled


def best_plan(
    log_odds: NDArray[np.float64],
    drafted: NDArray[np.int64],
    most: NDArray[np.int64],
    estimate: AcceptanceEstimator,
    *,
    plain_rows: int,
    rate: float,
    token_s: float,
    cost: CostCurve,
) -> NDArray[np.int64]:
    """Return how much of each draft to have and to verify, int64 [B], at most `most` [B].

    `drafted` [B] tokens there are of each, of `log_odds` [B, j], and every pass for another token
    of some or all of them takes `token_s`. The chances that each is accepted, and those that may
    follow, are by the `estimate`. The step has `plain_rows` rows without drafts. Of all plans the
    one that gains most is taken: the sum of the chances of its tokens, less what the time for it
    would have given at `rate` tokens per second; of equal ones that of the fewest tokens. NaN
    promises nothing.
    """
    planned: NDArray[np.int64] = _best(
        log_odds,
        estimate.slope,
        estimate.intercepts,
        drafted,
        most,
        plain_rows,
        float(rate),
        float(token_s),
        cost.table,
        cost.further_row_s,
    )
    return planned


@compiled()
def _best(  # noqa: PLR0917  to find the types of a tuple takes numba as long as the rest
    log_odds: Any,
    slope: float,
    intercepts: Any,
    drafted: Any,
    most: Any,
    plain_rows: int,
    rate: float,
    token_s: float,
    table: Any,
    further_row_s: float,
) -> Any:
    confidence = expected_confidence(log_odds, slope, intercepts)
    survival, planned = np.empty(confidence.shape), np.zeros(len(drafted), np.int64)
    survivals(confidence, most, survival)
    made = drafted.max()
    best = -np.inf
    for longest in range(made, most.max() + 1):
        taken = np.zeros(len(most), np.int64)
        tokens, rows = 0.0, plain_rows
        while True:
            seconds = (longest - made) * token_s + step_seconds(rows, table, further_row_s)
            gain = tokens - rate * seconds
            if gain > best:
                best = gain
                planned[:] = taken
            chance, place = most_promising(survival, taken, longest)
            if place < 0:
                break
            taken[place] += 1
            tokens += chance
            rows += 1
    return planned
