"""Estimates that leave a drafter's log-odds as they are, and log-odds of given chances."""

import numpy as np
from numpy.typing import NDArray

from outrider.engine.adaptive.acceptance_estimator import AcceptanceEstimator


def as_they_say(k: int) -> AcceptanceEstimator:
    """Of `k` positions, each accepted as often as its log-odds say."""
    return AcceptanceEstimator(1.0, np.zeros(k))


def log_odds_of(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Those of `chances` from 0 to 1, or NaN."""
    with np.errstate(divide="ignore"):
        odds: NDArray[np.float64] = np.log(chances / (1 - chances))
    return odds
