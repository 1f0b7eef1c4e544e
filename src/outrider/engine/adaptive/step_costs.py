"""What steps cost, measured at start-up and mended while serving."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from outrider.engine.adaptive.cost_curve import CONTEXT_TOKENS, CostCurve

FIT_STEPS = 32
"""So many steps wait to be fitted together: few enough that a machine whose speed changes has one
speed for most of them."""
LEVEL_GAIN = 0.3
"""How far the level of all costs follows that of the last fit."""
FARTHEST = 0.2
"""Logarithm of what a step may take against the others of its fit; more is a disturbance."""
FIRST_TRUST_STEPS = 5.0
MOST_TRUST_STEPS = 1_000.0
"""The measurement at start-up weighs as so many steps; what has been learned, no more than this."""
LIKENESS = 0.06
"""The difference between two logarithms of a number of rows at which the e-th part of what is
learned of one holds for the other."""


class StepCosts:
    """The `curve` of step costs, which follows what steps take.

    At start-up a size is timed a few times, under whatever else the machine does; an error of some
    per cent in one size against another misleads about rows that nearly pay. So each step is a
    measurement. Steps of one fit are compared with each other, since a machine's speed may change:
    what they have in common moves the level of the curve, what is left its shape.
    """

    def __init__(self, measured: CostCurve) -> None:
        self.curve = measured
        self._measured = measured
        self._level = 0.0
        self._fits = 0
        size = len(measured.table)
        self._log_rows = np.log(np.arange(size).clip(min=1))
        self._shape = np.zeros(size)
        self._trust = np.full(size, FIRST_TRUST_STEPS)
        self._rows: list[int] = []
        self._seconds: list[float] = []

    def observe(self, rows: int, seconds: float, *, cached_tokens: int = CONTEXT_TOKENS) -> None:
        """Learn that a step of `rows` rows, one of each request and its drafts, took so long.

        So many tokens were cached of its requests.
        """
        seconds -= self.curve.context_s(cached_tokens)
        if seconds <= 0:
            return  # shorter than the clock can tell
        self._rows.append(rows)
        self._seconds.append(seconds)
        if len(self._rows) == FIT_STEPS:
            self._fit(np.array(self._rows), np.array(self._seconds))
            self._rows, self._seconds = [], []

    def _fit(self, rows: NDArray[np.int64], seconds: NDArray[np.float64]) -> None:
        """Take the steps' logarithms against the curve into its level and shape."""
        error = np.log(seconds / self.curve.cost_s(rows))
        level = np.median(error)
        error = (error - level).clip(-FARTHEST, FARTHEST)
        error -= error.mean()
        self._fits += 1
        self._level += max(LEVEL_GAIN, 1 / self._fits) * float(level)
        sizes, which = np.unique(rows.clip(max=len(self._shape) - 1), return_inverse=True)
        alike = np.exp(-np.abs(self._log_rows - self._log_rows[sizes, None]) / LIKENESS)
        steps = np.bincount(which) @ alike
        self._shape += (np.bincount(which, error) @ alike) / (steps + self._trust)
        self._trust = np.minimum(self._trust + steps, MOST_TRUST_STEPS)
        scale = np.exp(self._shape + self._level)
        table = isotonic_regression(self._measured.table * scale, weights=self._trust).x
        self.curve = CostCurve(
            table, self._measured.further_row_s * float(scale[-1]), self._measured.cached_token_s
        )
