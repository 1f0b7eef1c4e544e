"""The cluster bootstrap, against scipy, the t interval and simulated coverage."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from outrider.acceptance.intervals import (
    Interval,
    _expanded_tail,
    cluster_bootstrap,
    cluster_bootstrap_vector,
)

FloatArray = npt.NDArray[np.float64]


def generator(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def rate(totals: FloatArray) -> FloatArray:
    share: FloatArray = totals[..., 0] / totals[..., 1]
    return share


def some_clusters(count: int, rng: np.random.Generator) -> FloatArray:
    """Accepted and steps of each cluster, with an acceptance of its own (0.4 on average)."""
    steps = rng.integers(20, 120, size=count)
    return np.column_stack([rng.binomial(steps, rng.beta(2, 3, size=count)), steps]).astype(float)


def bootstrap(totals: npt.ArrayLike, *, seed: int = 7, draws: int = 10_000) -> Interval:
    interval = cluster_bootstrap(totals, rate, rng=generator(seed), draws=draws)
    assert interval is not None
    return interval


def width(interval: Interval) -> float:
    return interval.high - interval.low


def plain_percentile(totals: FloatArray, draws: int = 10_000) -> tuple[float, float]:
    """The unexpanded interval, from scipy."""
    accepted, steps = totals.T
    interval = stats.bootstrap(
        (accepted, steps),
        lambda a, s, axis: a.sum(axis=axis) / s.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=draws,
        method="percentile",
        rng=generator(1),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def test_many_clusters_give_the_percentile_interval_of_scipy() -> None:
    totals = some_clusters(400, generator())
    interval = bootstrap(totals)
    low, high = plain_percentile(totals)
    assert interval.low == pytest.approx(low, abs=0.05 * (high - low))
    assert interval.high == pytest.approx(high, abs=0.05 * (high - low))
    assert (interval.level, interval.clusters) == (0.95, 400)


def test_six_clusters_give_a_wider_interval_than_plain_percentiles() -> None:
    totals = some_clusters(6, generator())
    interval = bootstrap(totals)
    low, high = plain_percentile(totals)
    assert interval.low < low
    assert interval.high > high
    # Phi(-sqrt(6/5) * 2.5706) is 0.0024 where the plain interval leaves out 0.025 at either end.
    assert width(interval) == pytest.approx((high - low) * 2.816 / 1.96, rel=0.15)


@pytest.mark.parametrize(
    ("level", "clusters", "t_quantile"),
    [(0.95, 2, 12.7062), (0.95, 6, 2.5706), (0.95, 24, 2.0687), (0.90, 6, 2.0150)],
)
def test_the_level_is_widened_by_the_t_quantile_of_printed_tables(
    level: float, clusters: int, t_quantile: float
) -> None:
    expected = stats.norm.cdf(-np.sqrt(clusters / (clusters - 1)) * t_quantile)
    assert _expanded_tail(level, clusters) == pytest.approx(expected, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_a_mean_of_normal_values_gets_about_its_t_interval(level: float) -> None:
    values = stats.norm.ppf((np.arange(12) + 0.5) / 12)
    totals = np.column_stack([values, np.ones(12)])
    interval = cluster_bootstrap(totals, rate, rng=generator(), draws=40_000, level=level)
    low, high = stats.t.interval(level, 11, loc=values.mean(), scale=stats.sem(values))
    assert interval is not None
    assert interval.low == pytest.approx(low, rel=0.05)
    assert interval.high == pytest.approx(high, rel=0.05)


@pytest.mark.parametrize(
    ("clusters", "least", "most"), [(2, 0.4, 0.6), (6, 0.9, 0.96), (12, 0.92, 0.98)]
)
def test_coverage_nears_its_level_as_clusters_grow(
    clusters: int, least: float, most: float
) -> None:
    rng = generator()
    held, held_plain, runs = 0, 0, 600
    for _ in range(runs):
        totals = some_clusters(clusters, rng)
        interval = cluster_bootstrap(totals, rate, rng=rng, draws=1000)
        picked = rng.integers(clusters, size=(1000, clusters))
        low, high = np.quantile(rate(totals[picked].sum(axis=1)), (0.025, 0.975))
        assert interval is not None
        held += interval.low <= 0.4 <= interval.high
        held_plain += low <= 0.4 <= high
    assert least < held / runs < most
    assert held >= held_plain
    if clusters > 2:
        assert held > held_plain


def test_the_same_seed_gives_the_same_interval_and_another_does_not() -> None:
    totals = some_clusters(24, generator())
    assert bootstrap(totals) == bootstrap(totals)
    assert bootstrap(totals) != bootstrap(totals, seed=8)


def test_more_steps_in_the_same_clusters_do_not_narrow_the_interval() -> None:
    totals = some_clusters(24, generator())
    once, tenfold = bootstrap(totals), bootstrap(10 * totals)
    assert (tenfold.low, tenfold.high) == pytest.approx((once.low, once.high), rel=1e-12)


def test_more_clusters_narrow_the_interval() -> None:
    totals = some_clusters(24, generator())
    assert width(bootstrap(np.tile(totals, (4, 1)))) < 0.6 * width(bootstrap(totals))


@pytest.mark.parametrize("clusters", [0, 1])
def test_fewer_than_two_clusters_have_no_interval(clusters: int) -> None:
    totals = np.ones((clusters, 2))
    assert cluster_bootstrap(totals, rate, rng=generator()) is None
    several = cluster_bootstrap_vector(totals, lambda t: t / t[..., 1:], rng=generator())
    assert several == (None, None)


def test_a_figure_undefined_in_many_draws_has_no_interval() -> None:
    # All four draws miss the only cluster with steps in (3/4)^4 = 32 % of the cases.
    assert cluster_bootstrap([[3, 9], [0, 0], [0, 0], [0, 0]], rate, rng=generator()) is None


def test_a_figure_undefined_in_few_draws_keeps_its_interval() -> None:
    # Five of six clusters have steps: only (1/6)^6 of the draws are undefined.
    totals = [[0, 0], [1, 2], [2, 3], [1, 4], [3, 9], [1, 2]]
    interval = bootstrap(totals, draws=200_000)
    assert 0.25 <= interval.low < 11 / 20 < interval.high <= 2 / 3


def test_each_figure_of_a_vector_is_judged_by_itself() -> None:
    def figures(totals: FloatArray) -> FloatArray:
        return totals / totals[..., [1, 0]]

    totals = some_clusters(5, generator())
    totals[:, 0] = [0, 0, 0, 0, 8]
    accepted_per_step, steps_per_accepted = cluster_bootstrap_vector(
        totals, figures, rng=generator()
    )
    assert steps_per_accepted is None
    assert accepted_per_step == cluster_bootstrap(totals, rate, rng=generator())


def test_figures_equal_in_every_cluster_have_an_interval_without_width() -> None:
    interval = bootstrap([[10, 20], [3, 6], [7, 14]])
    assert (interval.low, interval.high) == (0.5, 0.5)


def test_many_clusters_are_drawn_in_little_memory() -> None:
    clusters, draws = 3000, 10_000
    rng = generator()
    values = rng.normal(10, 2, size=clusters)
    totals = np.column_stack([values, np.ones(clusters)])
    tracemalloc.start()
    interval = bootstrap(totals, draws=draws)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # One weight for each draw and cluster, all at once, would be 240 MB.
    assert peak_bytes < 100e6
    assert width(interval) == pytest.approx(2 * 1.96 * stats.sem(values), rel=0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cluster_bootstrap([1.0, 2.0], rate, rng=generator()), "totals have 1 dimensions"),
        (lambda: cluster_bootstrap([[np.nan, 1]], rate, rng=generator()), "not finite"),
        (lambda: cluster_bootstrap([[1, 1]], rate, rng=generator(), draws=0), "draws is 0"),
        (lambda: cluster_bootstrap([[1, 1]], rate, rng=generator(), level=95), "level is 95"),
    ],
)
def test_arguments_out_of_range_are_refused(
    call: Callable[[], Interval | None], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call()
