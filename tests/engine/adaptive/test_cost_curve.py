import numpy as np
import pytest

from outrider.engine.adaptive.cost_curve import CostCurve


def costs(curve: CostCurve, *rows: int) -> list[float]:
    found: list[float] = curve.cost_s(np.array(rows)).tolist()
    return found


def test_measured_sizes_cost_what_was_measured() -> None:
    assert costs(CostCurve.of({8: 3.0, 1: 1.0, 4: 2.0}), 1, 4, 8) == [1.0, 2.0, 3.0]


def test_between_two_sizes_the_cost_is_on_the_line_between_them() -> None:
    assert costs(CostCurve.of({1: 1.0, 5: 3.0}), 2, 3) == [1.5, 2.0]


def test_beyond_the_largest_size_the_last_slope_goes_on() -> None:
    assert costs(CostCurve.of({1: 1.0, 2: 1.0, 4: 3.0}), 4, 6, 10) == [3.0, 5.0, 9.0]


def test_a_larger_step_never_costs_less() -> None:
    assert costs(CostCurve.of({1: 2.0, 2: 1.5, 3: 2.5}), 1, 2, 3) == [1.75, 1.75, 2.5]


@pytest.mark.parametrize("measured", [{}, {1: 1.0}, {0: 1.0, 1: 1.0}, {1: 1.0, 2: float("nan")}])
def test_what_is_no_curve_is_refused(measured: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="expected positive times"):
        CostCurve.of(measured)
