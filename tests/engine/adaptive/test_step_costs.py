"""A curve that was measured wrong, mended by steps on a machine whose time is made up."""

import numpy as np
import pytest
from numpy.typing import NDArray

from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.step_costs import FIT_STEPS, StepCosts

TRUE = CostCurve.of({1: 0.0100, 4: 0.0112, 9: 0.0135, 16: 0.017, 17: 0.020, 33: 0.026})
WRONG = CostCurve.of({1: 0.0100, 4: 0.0128, 9: 0.0129, 16: 0.018, 17: 0.0185, 33: 0.026})
USUAL = (4, 6, 9, 16, 17)


def serve(
    costs: StepCosts,
    *,
    steps: int,
    rows: tuple[int, ...] = USUAL,
    noise: float = 0.0,
    slowness: float = 1.0,
    seed: int = 0,
) -> None:
    """Steps of any of `rows`, the machine `slowness` times as slow as when it was measured."""
    random = np.random.default_rng(seed)
    for size in random.choice(rows, steps).tolist():
        costs.observe(size, slowness * TRUE.step_s(size) * float(np.exp(random.normal(0, noise))))


def shape_error(curve: CostCurve, rows: tuple[int, ...] = USUAL) -> NDArray[np.float64]:
    """How far costs are off against each other, as logarithms."""
    error = np.log(curve.cost_s(np.array(rows)) / TRUE.cost_s(np.array(rows)))
    centred: NDArray[np.float64] = error - error.mean()
    return centred


def test_nothing_changes_before_there_are_steps_for_a_fit() -> None:
    costs = StepCosts(WRONG)
    serve(costs, steps=FIT_STEPS - 1)
    assert costs.curve is WRONG
    serve(costs, steps=1)
    assert costs.curve is not WRONG


@pytest.mark.parametrize("noise", [0.0, 0.08])
@pytest.mark.parametrize("slowness", [1.0, 2.5])
def test_sizes_that_were_measured_wrong_are_mended(noise: float, slowness: float) -> None:
    costs = StepCosts(WRONG)
    assert np.abs(shape_error(WRONG)).max() > 0.08
    serve(costs, steps=2_000, noise=noise, slowness=slowness)
    assert np.abs(shape_error(costs.curve)).max() < 0.02
    assert costs.curve.step_s(9) == pytest.approx(slowness * TRUE.step_s(9), rel=0.05)


def test_a_machine_that_changes_its_speed_changes_no_cost_against_another() -> None:
    costs = StepCosts(TRUE)
    for turn in range(40):
        serve(costs, steps=50, slowness=1 + turn % 2, seed=turn)
    assert np.abs(shape_error(costs.curve)).max() < 0.03


def test_disturbed_steps_count_little() -> None:
    costs = StepCosts(TRUE)
    for turn in range(1_000):
        serve(costs, steps=1, slowness=30.0 if turn % 20 == 0 else 1.0, seed=turn)
    assert np.abs(shape_error(costs.curve)).max() < 0.02
    assert costs.curve.step_s(9) == pytest.approx(TRUE.step_s(9), rel=0.02)


def test_sizes_far_from_those_that_occur_keep_their_cost_against_them() -> None:
    costs = StepCosts(TRUE)
    serve(costs, steps=2_000, rows=(4, 5), slowness=2.0)
    assert costs.curve.step_s(33) == pytest.approx(2 * TRUE.step_s(33), rel=0.02)
    assert costs.curve.step_s(50) == pytest.approx(2 * TRUE.step_s(50), rel=0.02)


def test_larger_steps_than_were_measured_are_learned_from_too() -> None:
    costs = StepCosts(CostCurve.of({1: 0.01, 8: 0.02}))
    for _ in range(20 * FIT_STEPS):
        costs.observe(2, 0.0114)
        costs.observe(16, 0.05)
    assert costs.curve.step_s(16) / costs.curve.step_s(2) == pytest.approx(0.05 / 0.0114, rel=0.05)


def test_steps_of_one_size_say_nothing_of_it_against_others_however_they_scatter() -> None:
    costs, random = StepCosts(TRUE), np.random.default_rng(0)
    for late in random.exponential(0.08, 3_000).tolist():
        costs.observe(4, TRUE.step_s(4) * float(np.exp(late)))
    ratio = costs.curve.step_s(33) / costs.curve.step_s(4)
    assert ratio == pytest.approx(TRUE.step_s(33) / TRUE.step_s(4))


def test_a_larger_step_still_never_costs_less() -> None:
    costs = StepCosts(TRUE)
    for _ in range(20 * FIT_STEPS):
        costs.observe(9, 0.014)
        costs.observe(16, 0.012)
    assert (np.diff(costs.curve.table) >= 0).all()
    assert costs.curve.step_s(9) == pytest.approx(0.013, rel=0.03)
    assert costs.curve.step_s(16) == pytest.approx(0.013, rel=0.03)


def test_a_step_shorter_than_the_clock_can_tell_says_nothing() -> None:
    costs = StepCosts(TRUE)
    for _ in range(3 * FIT_STEPS):
        costs.observe(4, 0.0)
    assert costs.curve is TRUE


def test_what_long_contexts_take_says_nothing_of_rows() -> None:
    measured = CostCurve(TRUE.table, TRUE.further_row_s, cached_token_s=1e-6)
    costs = StepCosts(measured)
    for _ in range(3 * FIT_STEPS):
        for size in (4, 16):
            costs.observe(size, TRUE.step_s(size) + 1e-6 * (9_000 - 256), cached_tokens=9_000)
    np.testing.assert_allclose(costs.curve.table, TRUE.table)
    assert costs.curve.cached_token_s == 1e-6
