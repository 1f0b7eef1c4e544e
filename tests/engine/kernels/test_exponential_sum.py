import numpy as np
import pytest

from outrider.engine.kernels.exponential_sum import top_log_odds, weight_of_others


@pytest.mark.parametrize("count", [1, 5, 16, 31, 1_000, 49_152])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_it_is_the_sum_of_the_exponentials_of_all_but_the_best(
    count: int, temperature: float
) -> None:
    random = np.random.default_rng(count)
    logits = random.normal(0, 4, count).astype(np.float32)
    before = logits.copy()
    best = int(logits.argmax())
    others = np.delete(logits.astype(np.float64), best)
    expected = np.exp((others - float(logits[best])) / temperature).sum()
    assert weight_of_others(logits, best, temperature) == pytest.approx(expected, rel=2e-5)
    assert (logits == before).all()


def test_a_best_that_dwarfs_the_others_loses_nothing_of_them() -> None:
    logits = np.zeros(64, np.float32)
    logits[3] = 20.0
    expected = 63 * np.exp(-20.0)
    assert weight_of_others(logits, 3, 1.0) == pytest.approx(expected, rel=2e-5)


def test_what_is_impossible_weighs_nothing_and_what_is_no_number_shows() -> None:
    logits = np.full(40, -np.inf, np.float32)
    logits[[2, 35]] = 1.0, 0.0
    assert weight_of_others(logits, 2, 1.0) == pytest.approx(np.exp(-1.0), rel=1e-6)
    logits[7] = np.nan
    assert np.isnan(weight_of_others(logits, 2, 1.0))


@pytest.mark.parametrize("padding", [0, 7])
def test_log_odds_of_all_rows_are_those_of_each(padding: int) -> None:
    padded = np.random.default_rng(1).normal(0, 4, (3, 40 + padding)).astype(np.float32)
    logits = padded[:, :40]
    tops, temperatures = logits.argmax(axis=1), np.array([0.5, 1.0, 2.0])
    expected = [
        -np.log(weight_of_others(np.ascontiguousarray(row), top, temperature))
        for row, top, temperature in zip(logits, tops, temperatures, strict=True)
    ]
    assert top_log_odds(logits, tops, temperatures, 40.0).tolist() == pytest.approx(expected)


def test_log_odds_have_bounds_but_what_is_no_number_stays_none() -> None:
    logits = np.zeros((3, 20), np.float32)
    logits[0, 4] = 90.0
    logits[1] = -np.inf
    logits[1, 4] = 0.0
    logits[2, 9] = np.nan
    found = top_log_odds(logits, np.array([4, 4, 4]), np.ones(3), 30.0)
    assert found[:2].tolist() == [30.0, 30.0]
    assert np.isnan(found[2])
    sure_of_another = np.array([[0.0, 90.0]], np.float32)
    assert top_log_odds(sure_of_another, np.array([0]), np.ones(1), 30.0).tolist() == [-30.0]
