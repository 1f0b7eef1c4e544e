"""The step cost as it is typed or kept in a file."""

import csv
from pathlib import Path

from outrider.acceptance.step_cost import (
    EXPECTED,
    StepCost,
    fit_step_cost,
    parse_step_cost,
    step_cost_from_rows,
)
from outrider.errors import InvalidSetting
from outrider.records.validation import LONGEST_DRAFT

LEAST, MOST = 1e-6, 1e9
"""Of a cost in plain steps or ms: beyond it no step can be meant."""

_EXPECTED = (
    "base,per_token (1,0.1 or 12ms,0.4ms), a table 0:12ms,1:13ms,..., or a CSV file with the"
    " columns k and ms (or relative), or k, tokens_per_s and mean_acceptance_length"
)

_COLUMNS = ({"k", "ms"}, {"k", "relative"}, {"k", "tokens_per_s", "mean_acceptance_length"})


def read_step_cost(text: str) -> StepCost:
    """Return the cost that was typed, or that a CSV file tells; InvalidSetting otherwise."""
    path = Path(text)
    if not path.is_file() and path.suffix == ".csv":
        raise InvalidSetting(f"--step-cost {text}, which is no file", _EXPECTED, "check the path")
    try:
        cost = _from_file(path) if path.is_file() else parse_step_cost(text)
        _check_range(cost)
    except ValueError as error:
        told = str(error).removesuffix(f"; {EXPECTED}")
        raise InvalidSetting(f"--step-cost {text} ({told})", _EXPECTED, "correct it") from error
    return cost


def _check_range(cost: StepCost) -> None:
    for k in range(LONGEST_DRAFT + 1):
        one = cost.cost(k)
        if one is not None and not LEAST <= one <= MOST:
            raise ValueError(f"K = {k} costs {one:g}; expected {LEAST:g} to {MOST:g}")


def _from_file(path: Path) -> StepCost:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        columns, rows = reader.fieldnames or (), list(reader)
    if not any(needed <= set(columns) for needed in _COLUMNS):
        raise ValueError(f"its columns are {', '.join(columns) or 'none'}")
    for unit in ("ms", "relative"):
        if unit in columns:
            costs = [(int(row["k"]), float(row[unit])) for row in rows]
            return step_cost_from_rows(costs, relative=unit == "relative")
    return fit_step_cost(
        [
            (int(row["k"]), float(row["tokens_per_s"]), float(row["mean_acceptance_length"]))
            for row in rows
        ]
    )
