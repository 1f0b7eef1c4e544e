"""What a verification step costs at each draft length, in ms or in plain one-token steps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType

import numpy as np

EXPECTED = (
    "expected base,per_token as 1,0.115 or 12.5ms,1.4ms, or a table as 0:12.5ms,1:13.0ms,2:14.1ms"
)
_UNIT = "ms"


@dataclass(frozen=True, slots=True)
class StepCost:
    """The cost of a step that verifies k draft tokens, for k from 0 (a plain step).

    `relative` costs are in plain steps, others in ms. `table` holds measured costs by k. `line` is
    (base, per_token), for the k that the table lacks; without it nothing is said of those.
    """

    relative: bool
    table: Mapping[int, float]
    line: tuple[float, float] | None = None

    def cost(self, k: int) -> float | None:
        """Return the cost of a step at draft length k, None where it is unknown.

        >>> parse_step_cost("1,0.115").cost(2), parse_step_cost("0:1,1:1.1").cost(2)
        (1.23, None)
        """
        if k in self.table or self.line is None:
            return self.table.get(k)
        base, per_token = self.line
        return base + k * per_token

    @property
    def text(self) -> str:
        """The cost in words."""
        unit = " plain steps" if self.relative else f" {_UNIT}"
        parts = [f"K = {k}: {cost:.4g}" for k, cost in sorted(self.table.items())]
        if self.line is not None:
            base, per_token = self.line
            parts.append(f"{'other K: ' if parts else ''}{base:.4g} + {per_token:.4g} per token")
        return f"{', '.join(parts)}, in{unit}"


def parse_step_cost(text: str) -> StepCost:
    """Return the cost that was typed as `base,per_token` or as a table `k:cost,...`.

    Costs that end in "ms" are milliseconds, plain numbers count plain steps. Raises ValueError.
    """
    parts = [part.strip() for part in text.split(",")]
    if any(":" in part for part in parts):
        named = [_table_entry(part, text) for part in parts]
        relative = _one_unit([cost for _, cost in named], text)
        return step_cost_from_rows([(k, cost[0]) for k, cost in named], relative=relative)
    if len(parts) != 2:  # noqa: PLR2004
        raise ValueError(f"step cost {text!r} has {len(parts)} numbers; {EXPECTED}")
    costs = [_number(part, text) for part in parts]
    (base, _), (per_token, _) = costs
    if base <= 0 or per_token < 0:
        raise ValueError(
            f"step cost {text!r} has base {base:g} and {per_token:g} per token;"
            " expected a base above 0 and at least 0 per token"
        )
    return StepCost(_one_unit(costs, text), MappingProxyType({}), (base, per_token))


def step_cost_from_rows(rows: Iterable[tuple[int, float]], *, relative: bool) -> StepCost:
    """Return the cost of measured (k, cost) rows, in plain steps if `relative`, else in ms.

    Raises ValueError for no rows, a k twice or below 0, or a cost that is not above 0.
    """
    table: dict[int, float] = {}
    for k, cost in rows:
        if k < 0 or not 0 < cost < float("inf"):
            raise ValueError(
                f"a step at K = {k} costs {cost:g}; expected K from 0 and a cost above 0"
            )
        if k in table:
            raise ValueError(f"K = {k} has two costs, {table[k]:g} and {cost:g}; expected one")
        table[k] = cost
    if not table:
        raise ValueError("the table of step costs is empty; expected at least one K and its cost")
    return StepCost(relative, MappingProxyType(table))


def step_cost_ratios(rows: Sequence[tuple[int, float, float]]) -> dict[int, float]:
    """Return the cost of a step in plain steps, from measured (k, tokens per s, M) rows.

    A step emits M tokens, so its time is M over the tokens per second; k = 0 is the baseline, with
    M = 1. Raises ValueError without a baseline or for numbers that no run gives.

    >>> step_cost_ratios([(0, 100.0, 1.0), (2, 150.0, 1.8)])
    {0: 1.0, 2: 1.2}
    """
    by_k = {k: (speed, length) for k, speed, length in rows}
    if len(by_k) != len(rows):
        raise ValueError("two rows have the same K; expected one row for each")
    for k, (speed, length) in by_k.items():
        if k < 0 or not (0 < speed < float("inf") and 1 <= length <= k + 1):
            raise ValueError(
                f"K = {k} has {speed:g} tokens/s at M = {length:g};"
                " expected K from 0, a speed above 0 and M from 1 to K + 1"
            )
    if 0 not in by_k:
        raise ValueError("there is no row of K = 0; expected the speed without speculation")
    plain = by_k[0][0]
    return {k: plain * length / speed for k, (speed, length) in by_k.items()}


def fit_step_cost(rows: Sequence[tuple[int, float, float]]) -> StepCost:
    """Return the relative cost of measured (k, tokens per s, M) rows, and the line through them.

    The measured k keep their cost. From two k > 0 on, least squares give `line` for the others:
    its slope is the cost of one more draft token, and its base holds what drafting costs at all,
    which a plain step lacks. Raises ValueError as `step_cost_ratios`.
    """
    ratios = step_cost_ratios(rows)
    drafting = sorted(k for k in ratios if k)
    line = None
    if len(drafting) > 1:
        slope, base = np.polyfit(drafting, [ratios[k] for k in drafting], 1)
        line = (float(base), float(slope))
    return StepCost(relative=True, table=MappingProxyType(ratios), line=line)


def _table_entry(part: str, text: str) -> tuple[int, tuple[float, bool]]:
    k, colon, cost = part.partition(":")
    if not (colon and k.strip().isdecimal()):
        raise ValueError(
            f"step cost {text!r} has {part!r} where a K and its cost should be; {EXPECTED}"
        )
    return int(k), _number(cost, text)


def _number(part: str, text: str) -> tuple[float, bool]:
    """Return the number and whether it is relative."""
    digits = part.strip()
    relative = not digits.endswith(_UNIT)
    try:
        value = float(digits.removesuffix(_UNIT))
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise ValueError(f"step cost {text!r} has {digits!r} where a number should be; {EXPECTED}")
    return value, relative


def _one_unit(costs: Sequence[tuple[float, bool]], text: str) -> bool:
    units = {relative for _, relative in costs}
    if len(units) > 1:
        raise ValueError(f"step cost {text!r} mixes ms and plain numbers; expected one of them")
    return units.pop()
