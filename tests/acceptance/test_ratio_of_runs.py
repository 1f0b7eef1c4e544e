"""Ratios of runs whose spread differs, against scipy."""

import numpy as np
import pytest
from scipy import stats

from outrider.acceptance.ratio_of_runs import welch_log_ratio

ON, OFF = (328, 348, 364), (281.6, 282.4, 283.1)


def test_a_self_repeating_prompt_spreads_only_with_speculation() -> None:
    ratio = welch_log_ratio(ON, OFF)
    assert ratio.on_variation == pytest.approx(0.052, abs=5e-4)
    assert ratio.off_variation == pytest.approx(0.0027, abs=5e-5)
    assert ratio.ratio_of_means == pytest.approx(1.228, abs=5e-4)
    assert ratio.ratio == pytest.approx(1.228, abs=2e-3)


def test_the_interval_is_that_of_welch_on_logs() -> None:
    ratio = welch_log_ratio(ON, OFF)
    on, off = np.log(ON), np.log(OFF)
    share_on, share_off = on.var(ddof=1) / 3, off.var(ddof=1) / 3
    freedom = (share_on + share_off) ** 2 / (share_on**2 / 2 + share_off**2 / 2)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(share_on + share_off)
    gain = on.mean() - off.mean()
    assert (ratio.low, ratio.high) == pytest.approx((np.exp(gain - half), np.exp(gain + half)))
    assert ratio.high - ratio.low > 0.2
    expected = stats.ttest_ind(on, off, equal_var=False).pvalue
    assert ratio.p_value == pytest.approx(expected)


def test_runs_without_any_spread_have_a_ratio_without_width() -> None:
    ratio = welch_log_ratio((20, 20), (10, 10))
    assert (ratio.low, ratio.ratio, ratio.high) == pytest.approx((2, 2, 2))
    assert ratio.p_value == 0
    assert welch_log_ratio((10, 10), (10, 10)).p_value == 1


@pytest.mark.parametrize(("on", "off"), [((1,), (1, 2)), ((1, 2), ()), ((1, 0), (1, 2))])
def test_too_few_runs_or_no_speed_are_refused(
    on: tuple[float, ...], off: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match="expected"):
        welch_log_ratio(on, off)
