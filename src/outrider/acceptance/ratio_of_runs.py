"""How many times faster one set of runs is than another whose spread may differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np
from scipy import stats

from outrider.acceptance.intervals import FloatArray

FEWEST_RUNS = 2


@dataclass(frozen=True, slots=True)
class RatioOfRuns:
    """`ratio` of the geometric means with its interval `low` to `high`, and the spread of each.

    `ratio_of_means` is of the arithmetic means. `on_variation` and `off_variation` are standard
    deviations over means.
    """

    ratio: float
    low: float
    high: float
    level: float
    p_value: float
    ratio_of_means: float
    on_variation: float
    off_variation: float


def welch_log_ratio(
    on: Sequence[float], off: Sequence[float], *, level: float = 0.95
) -> RatioOfRuns:
    """Return how many times faster the runs `on` are than the runs `off`, by Welch's t on logs.

    The variances may differ, as those of a prompt that repeats itself do with and without
    speculation. Raises ValueError for fewer than two runs on a side, or a speed not above 0.
    """
    logs_on, logs_off = _logs("on", on), _logs("off", off)
    gain = float(logs_on.mean() - logs_off.mean())
    if logs_on.std() or logs_off.std():
        test = stats.ttest_ind(logs_on, logs_off, equal_var=False)
        low, high = test.confidence_interval(level)
        p_value = float(test.pvalue)
    else:
        low = high = gain
        p_value = float(gain == 0)
    return RatioOfRuns(
        ratio=exp(gain),
        low=exp(low),
        high=exp(high),
        level=level,
        p_value=p_value,
        ratio_of_means=float(np.mean(on) / np.mean(off)),
        on_variation=_variation(on),
        off_variation=_variation(off),
    )


def _logs(side: str, speeds: Sequence[float]) -> FloatArray:
    if len(speeds) < FEWEST_RUNS:
        raise ValueError(f"{len(speeds)} runs are {side}; expected at least {FEWEST_RUNS}")
    if not all(0 < speed < float("inf") for speed in speeds):
        raise ValueError(f"the runs {side} have speeds {list(speeds)}; expected all above 0")
    return np.log(np.asarray(speeds, dtype=np.float64))


def _variation(speeds: Sequence[float]) -> float:
    return float(np.std(speeds, ddof=1) / np.mean(speeds))
