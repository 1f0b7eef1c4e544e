import doctest
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from outrider.acceptance import alarm, alarm_band
from outrider.acceptance.alarm_band import (
    FixedBand,
    Limits,
    band_of_interval,
    learned_band,
)
from outrider.acceptance.intervals import Interval

LEARNED = 20
P_OUTSIDE_3_SIGMA = 0.0027


def windows(
    rng: np.random.Generator, count: int, *, clumped: int, rate: float = 0.8
) -> tuple[list[int], list[int]]:
    """Windows of 20 to 200 answers whose steps come `clumped` together, with rare long ones.

    All steps of a clump accept alike, so that the variance is `clumped` times that of independent
    steps.
    """
    steps, accepted = [], []
    for _ in range(count):
        clumps = int(rng.integers(20, 200))
        lengths = rng.geometric(1 / (1 + rate), size=clumps) - 1
        steps.append(clumps * clumped)
        accepted.append(int(lengths.sum()) * clumped)
    return steps, accepted


def test_the_docstring_examples_hold() -> None:
    for module in (alarm, alarm_band):
        results = doctest.testmod(module)
        assert results.attempted > 0
        assert results.failed == 0


def test_the_limits_of_five_windows_worked_out_by_hand() -> None:
    """M - 1 is 1.0, 1.2, 0.8, 1.0 and 1.0 of 100 steps each."""
    band = learned_band([100] * 5, [100, 120, 80, 100, 100])
    # (M - mean) * sqrt(100) is 0, 2, -2, 0, 0; its moving ranges 2, 4, 2, 0 have the mean 2.
    spread = 2 / 1.128
    freedom = 16 / (2 * (0.8264 * 5 - 1.082))
    factor = stats.t.ppf(stats.norm.cdf(3), freedom)
    assert band.centre == 2.0
    assert band.spread == pytest.approx(spread)
    assert band.factor == pytest.approx(factor)
    away = factor * spread * sqrt(1 / 4000 + 1 / 500)
    limits = band.limits(4000)
    assert limits.low is not None
    assert limits.high is not None
    assert (limits.low, limits.high) == pytest.approx((2 - away, 2 + away))


def test_with_very_many_windows_the_limits_are_laneys() -> None:
    steps, accepted = windows(np.random.default_rng(1), 20_000, clumped=5)
    band = learned_band(steps, accepted, step_variance=0.8 * 1.8)
    assert band.factor == pytest.approx(3, abs=0.01)
    assert band.dispersion == pytest.approx(sqrt(5), rel=0.02)
    limits = band.limits(1000)
    assert limits.high == pytest.approx(1.8 + 3 * sqrt(5) * sqrt(0.8 * 1.8 / 1000), rel=0.01)


def test_the_variance_of_a_step_cancels_out_of_the_limits() -> None:
    data = windows(np.random.default_rng(2), LEARNED, clumped=8)
    without = learned_band(*data)
    assert learned_band(*data, step_variance=1.4).limits(500) == without.limits(500)


def test_limits_are_never_tighter_than_those_of_independent_steps() -> None:
    """Windows that are all alike by luck do not make the next one remarkable."""
    band = learned_band([100] * 6, [80] * 6, step_variance=1.0)
    assert band.spread == 1.0
    assert band.dispersion == 1.0


def test_more_steps_have_tighter_limits() -> None:
    band = learned_band(*windows(np.random.default_rng(3), LEARNED, clumped=4))
    few, many = band.limits(200), band.limits(5000)
    assert few.high is not None
    assert many.high is not None
    assert many.high < few.high


def test_false_alarms_are_as_rare_as_promised_and_far_rarer_than_of_plain_limits() -> None:
    """500 bands learned from 20 over-dispersed windows, and 20 further windows on each."""
    rng = np.random.default_rng(4)
    laney = plain = judged = 0
    for _ in range(500):
        band = learned_band(*windows(rng, LEARNED, clumped=10))
        variance = (band.centre - 1) * band.centre  # of independent geometric steps
        for s, a in zip(*windows(rng, 20, clumped=10), strict=True):
            m = 1 + a / s
            judged += 1
            laney += band.limits(s).side(m) is not None
            plain += abs(m - band.centre) > 3 * sqrt(variance / s)
    assert plain / judged > 0.25
    assert 0.3 * P_OUTSIDE_3_SIGMA < laney / judged < 2 * P_OUTSIDE_3_SIGMA


@pytest.mark.parametrize(("rate", "side"), [(0.3, "low"), (1.8, "high")])
def test_a_shift_is_found(rate: float, side: str) -> None:
    rng = np.random.default_rng(5)
    found = judged = 0
    for _ in range(200):
        band = learned_band(*windows(rng, LEARNED, clumped=3))
        for s, a in zip(*windows(rng, 5, clumped=3, rate=rate), strict=True):
            judged += s > 300
            found += s > 300 and band.limits(s).side(1 + a / s) == side
    assert found / judged > 0.75


def test_no_limit_is_given_that_no_m_can_pass() -> None:
    band = learned_band([100] * 5, [10, 120, 0, 90, 30], k=1)
    assert band.limits(20) == Limits(None, None)


@pytest.mark.parametrize("steps", [[100] * 4, [100, 100, 0, 100, 100]])
def test_too_few_windows_or_one_without_steps_teach_nothing(steps: list[int]) -> None:
    with pytest.raises(ValueError, match="expected at least 5, each with steps"):
        learned_band(steps, [0] * len(steps))


def test_a_baselines_interval_tells_how_much_windows_vary() -> None:
    """1.9 ± 0.1 from 10,000 steps of 400 answers is as well known as ± 1 from 100 steps."""
    t = stats.t.ppf(0.975, 399)
    interval = Interval(1.9 - 0.1, 1.9 + 0.1, 0.95, 400)
    band = band_of_interval(1.9, interval, steps=10_000)
    factor = stats.t.ppf(stats.norm.cdf(3), 399)
    high = band.limits(100).high
    assert high == pytest.approx(1.9 + factor * 0.1 / t * sqrt(100 + 1))


def test_false_alarms_against_a_baseline_are_rare_with_correlated_steps() -> None:
    """The steps of the baseline and of each window come in tens that accept alike."""
    rng = np.random.default_rng(6)
    outside = judged = 0
    for _ in range(150):
        s, a = (np.array(each) for each in windows(rng, 60, clumped=10))
        drawn = rng.integers(60, size=(200, 60))
        low, high = np.quantile(1 + a[drawn].sum(1) / s[drawn].sum(1), (0.025, 0.975))
        band = band_of_interval(
            1 + a.sum() / s.sum(), Interval(low, high, 0.95, 60), steps=int(s.sum())
        )
        for steps, accepted in zip(*windows(rng, 10, clumped=10), strict=True):
            judged += 1
            outside += band.limits(steps).side(1 + accepted / steps) is not None
    assert outside / judged < 3 * P_OUTSIDE_3_SIGMA


def test_a_fixed_band_holds_for_any_number_of_steps() -> None:
    band = FixedBand(Limits(1.3, 2.5))
    assert {band.limits(steps) for steps in (1, 10**6)} == {Limits(1.3, 2.5)}
    assert [Limits(1.3, 2.5).side(m) for m in (1.29, 1.3, 2.5, 2.51)] == ["low", None, None, "high"]


def test_a_band_tells_how_many_steps_notice_the_loss_of_three_quarters() -> None:
    band = learned_band([60] * 20, [12, 9, 15, 13, 11] * 4, step_variance=0.3)
    low = band.limits(band.fewest_steps).low
    before = band.limits(band.fewest_steps - 1).low
    least = 1 + 0.25 * (band.centre - 1)
    assert band.fewest_steps > 60
    assert before is not None
    assert low is not None
    assert before < least <= low


def test_where_no_number_of_steps_would_do_none_are_waited_for() -> None:
    assert learned_band([100] * 5, [10, 120, 0, 90, 30], k=1).fewest_steps == 1
    assert learned_band([100] * 5, [0] * 5).fewest_steps == 1
    assert FixedBand(Limits(None, 2.5)).fewest_steps == 1
