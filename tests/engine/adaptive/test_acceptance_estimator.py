import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from outrider.engine.adaptive.acceptance_estimator import (
    REFIT_STEPS,
    RIDGE,
    AcceptanceEstimator,
    expected_confidence,
    newton_step,
)

Floats = NDArray[np.float64]


def observed(
    log_odds: list[list[float]], verified: list[int], accepted: list[int]
) -> AcceptanceEstimator:
    start = AcceptanceEstimator.start(len(log_odds[0]))
    return start.observed(np.array(log_odds), np.array(verified), np.array(accepted))


def test_before_anything_is_seen_confidence_rises_with_the_log_odds_alone() -> None:
    c = AcceptanceEstimator.start(2).confidence(np.array([[0.0, 2.0]]))
    np.testing.assert_allclose(c, [[1 / (1 + np.exp(0.2)), 1 / (1 + np.exp(-0.8))]])


@pytest.mark.parametrize(
    ("verified", "accepted", "seen"),
    [(3, 3, [1, 1, 1]), (3, 1, [1, 1, 0]), (3, 0, [1, 0, 0]), (1, 1, [1, 0, 0]), (0, 0, [0, 0, 0])],
)
def test_accepted_positions_and_the_first_rejected_one_are_seen(
    verified: int, accepted: int, seen: list[int]
) -> None:
    learned = observed([[1.0, 1.0, 1.0]], [verified], [accepted])
    assert learned.sums.observations.tolist() == seen


def test_the_sums_of_one_step_by_hand() -> None:
    learned = observed([[2.0, -1.0]], [2], [1])
    c = expit([0.5 * 2.0 - 0.2, 0.5 * -1.0 - 0.2])
    error = [1 - c[0], 0 - c[1]]
    weight = c * (1 - c)
    sums = learned.sums
    np.testing.assert_allclose(sums.intercept_gradient, error)
    assert sums.slope_gradient == pytest.approx(2 * error[0] - error[1])
    assert sums.slope_curvature == pytest.approx(4 * weight[0] + weight[1])
    np.testing.assert_allclose(sums.cross_curvature, [2 * weight[0], -weight[1]])
    np.testing.assert_allclose(sums.intercept_curvature, weight)


def test_a_position_without_log_odds_says_nothing() -> None:
    learned = observed([[1.0, float("nan")]], [2], [2])
    assert learned.sums.observations.tolist() == [1, 0]
    assert np.isfinite(learned.sums.slope_gradient)


def test_the_arrow_is_solved_as_a_full_system_would_be() -> None:
    rng = np.random.default_rng(0)
    learned = AcceptanceEstimator.start(4)
    for _ in range(5):
        accepted = rng.integers(0, 5, 8)
        learned = learned.observed(rng.normal(size=(8, 4)), np.full(8, 4), accepted)
    sums = learned.sums
    full = np.zeros((5, 5))
    full[0, 0] = sums.slope_curvature
    full[0, 1:] = full[1:, 0] = sums.cross_curvature
    full[1:, 1:] = np.diag(sums.intercept_curvature)
    gradient = np.concatenate([[sums.slope_gradient], sums.intercept_gradient])
    expected = np.linalg.solve(full + RIDGE * np.eye(5), gradient)
    slope, intercepts = newton_step(sums)
    np.testing.assert_allclose([slope, *intercepts], expected)


def test_few_observations_move_the_estimate_only_part_of_the_way() -> None:
    learned = observed([[1.0, 1.0]] * 50, [2] * 50, [2] * 30 + [0] * 20)
    slope, intercepts = newton_step(learned.sums)
    refitted = learned.refitted()
    assert learned.sums.observations.tolist() == [50, 30]
    assert refitted.slope == pytest.approx(0.5 + slope * 80 / 130)
    np.testing.assert_allclose(refitted.intercepts, -0.2 + intercepts * [50 / 100, 30 / 80])


def test_a_position_that_was_never_seen_keeps_its_intercept() -> None:
    refitted = observed([[1.0, 1.0]] * 9, [1] * 9, [1] * 9).refitted()
    assert refitted.intercepts[1] == -0.2
    assert refitted.intercepts[0] > -0.2


def test_a_slope_below_zero_is_not_believed() -> None:
    surer_is_worse = [[4.0]] * 500 + [[-4.0]] * 500
    learned = observed(surer_is_worse, [1] * 1000, [0] * 500 + [1] * 500)
    refitted = learned.refitted()
    assert (refitted.slope, refitted.intercepts.tolist()) == (0.5, [-0.2])
    assert refitted.sums.observations.tolist() == [0]


def test_it_refits_every_hundred_steps_and_starts_new_sums() -> None:
    step = (np.array([[1.0]]), np.array([1]), np.array([1]))
    estimator = AcceptanceEstimator.start(1)
    for _ in range(REFIT_STEPS - 1):
        estimator = estimator.observed(*step)
    assert estimator.intercepts.tolist() == [-0.2]
    estimator = estimator.observed(*step)
    assert estimator.intercepts[0] > -0.2
    assert (len(estimator.pending), estimator.sums.observations.tolist()) == (0, [0])


def test_it_finds_the_slope_and_intercepts_that_made_the_data() -> None:
    rng = np.random.default_rng(7)
    slope, intercepts = 0.9, np.array([0.8, 0.1, -0.6])
    estimator = AcceptanceEstimator.start(3)
    for _ in range(12 * REFIT_STEPS):
        log_odds = rng.normal(0.5, 1.5, size=(16, 3))
        accepts = rng.random((16, 3)) < expit(slope * log_odds + intercepts)
        accepted = np.cumprod(accepts, axis=1).sum(axis=1)
        estimator = estimator.observed(log_odds, np.full(16, 3), accepted)
    assert estimator.slope == pytest.approx(slope, abs=0.1)
    np.testing.assert_allclose(estimator.intercepts, intercepts, atol=0.2)


def test_a_step_changes_nothing_in_the_estimator_it_was_asked_of() -> None:
    start = AcceptanceEstimator.start(1)
    start.observed(np.array([[1.0]]), np.array([1]), np.array([1]))
    assert start.pending == ()
    assert start.sums.observations.tolist() == [0]
    assert start.slope == 0.5


def test_a_large_batch_brings_a_refit_sooner_and_every_one_takes_longer() -> None:
    step = (np.zeros((40, 1)), np.full(40, 1), np.full(40, 1))
    estimator, refitted_at = AcceptanceEstimator.start(1), []
    for number in range(1, 40):
        refits = estimator.refits
        estimator = estimator.observed(*step)
        if estimator.refits > refits:
            refitted_at.append(number)
    assert refitted_at == [5, 15, 30]


def test_what_may_follow_is_expected_to_be_as_sure_as_the_last_token() -> None:
    learned = observed([[3.0, 1.0, 0.5]] * 3, [3, 3, 2], [3, 1, 0]).refitted()
    assert len(set(learned.intercepts.tolist())) > 1
    known = np.array([[2.0, -1.0], [0.5, np.nan]])
    padded = np.array([[2.0, -1.0, -1.0], [0.5, np.nan, np.nan]])
    for given in (known, padded):
        expected = expected_confidence(given, learned.slope, learned.intercepts)
        np.testing.assert_allclose(expected, learned.confidence(padded))
