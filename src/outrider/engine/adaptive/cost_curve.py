"""What a target step costs by the number of its rows, and of the tokens that they attend to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

CONTEXT_TOKENS = 256
"""How much each row has to attend to while a step is timed."""


@dataclass(frozen=True, slots=True, eq=False)
class CostCurve:
    """Seconds of a step by its rows, never falling, as of one request with `CONTEXT_TOKENS`.

    `table` has the costs of 0, 1, … rows up to the last measured, and each one beyond costs
    `further_row_s`. Every token more that is cached of the requests of a step, whose keys and
    values it reads once for all rows of a request, costs `cached_token_s`.
    """

    table: NDArray[np.float64]
    further_row_s: float
    cached_token_s: float = 0.0

    @classmethod
    def of(cls, measured_s: Mapping[int, float], *, cached_token_s: float = 0.0) -> Self:
        """Take measured costs; where larger steps seemed cheaper than smaller ones, their mean.

        Between two measurements the cost is on the line between them, beyond the last on the line
        through the last two. Raises ValueError for fewer than two sizes, for one below 1, or for a
        cost not above 0.
        """
        rows = np.array(sorted(measured_s), np.int64)
        seconds = np.array([measured_s[size] for size in rows.tolist()], np.float64)
        if len(rows) < 2 or rows[0] < 1 or not (np.isfinite(seconds) & (seconds > 0)).all():  # noqa: PLR2004
            raise ValueError(
                f"step costs {dict(measured_s)}; expected positive times of two sizes or more"
            )
        seconds = isotonic_regression(seconds).x
        slope = float((seconds[-1] - seconds[-2]) / (rows[-1] - rows[-2]))
        table = np.interp(np.arange(rows[-1] + 1), rows, seconds)
        return cls(table, slope, cached_token_s)

    def cost_s(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the seconds of steps with so many rows each."""
        last = len(self.table) - 1
        inside: NDArray[np.float64] = self.table[np.minimum(rows, last)]
        return inside + self.further_row_s * np.maximum(rows - last, 0)

    def step_s(self, rows: int) -> float:
        """Return the seconds of one step with so many rows."""
        if rows < len(self.table):
            return float(self.table[rows])
        return float(self.cost_s(np.array([rows]))[0])

    def context_s(self, cached_tokens: int) -> float:
        """Return what a step takes more where so many tokens are cached of all its requests."""
        return self.cached_token_s * (cached_tokens - CONTEXT_TOKENS)
