"""Which key explains the variation of M between records, against raw data and simulation."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import fdtrc

from outrider.acceptance.totals import Totals
from outrider.acceptance.variation import best_key, explained_variation
from outrider.records.reading import AcceptanceRecord
from outrider.records.tabulate import tabulate
from outrider.records.validation import validated

Pairs = Sequence[tuple[int, int]]
"""Accepted tokens and steps of records."""


def totals_of(records: Pairs) -> Totals:
    made = [validated(AcceptanceRecord(engine="any", steps=s, accepted=a)) for a, s in records]
    return Totals.empty(0).with_rows(tabulate(made, 0))


def of_histograms(histograms: Sequence[Sequence[int]]) -> Totals:
    made = [validated(AcceptanceRecord(engine="any", k=4, histogram=h)) for h in histograms]
    return Totals.empty(4).with_rows(tabulate(made, 4))


pairs = st.integers(1, 60).flatmap(lambda s: st.tuples(st.integers(0, 5 * s), st.just(s)))
grouped = st.lists(st.lists(pairs, min_size=5, max_size=12), min_size=2, max_size=4)


def by_brute_force(groups: Sequence[Pairs]) -> tuple[float, float, float]:
    """Explained share, F and p value from the records themselves, matrices and all."""
    arrays = [np.array(group, dtype=float) for group in groups]
    every = np.concatenate(arrays)
    ratios, sizes, variances = [], [], []
    for rows in arrays:
        accepted, steps = rows.T
        shares = steps / steps.sum()
        ratio = float(shares @ (accepted / steps))
        size = 1 / float((shares**2).sum())
        ratios.append(ratio)
        sizes.append(size)
        variances.append(size / (size - 1) * float(shares**2 @ (accepted / steps - ratio) ** 2))
    weights = np.array([rows[:, 1].sum() for rows in arrays]) / every[:, 1].sum()
    form = np.diag(weights) - np.outer(weights, weights)
    product = form @ np.diag(variances)
    noise = np.diag(product)
    upper = noise.sum() ** 2 / np.trace(product @ product)
    lower = noise.sum() ** 2 / sum(
        part**2 / (size - 1) for part, size in zip(noise, sizes, strict=True)
    )
    between = max(0.0, float(np.array(ratios) @ form @ np.array(ratios)))
    real = max(0.0, between - noise.sum())
    within = sum(w * n * v for w, n, v in zip(weights, sizes, variances, strict=True))
    f = between / noise.sum()
    return real / (real + within), f, float(fdtrc(upper, lower, f))


@given(grouped)
@settings(max_examples=100, deadline=None)
def test_the_sums_give_what_the_records_give(groups: list[list[tuple[int, int]]]) -> None:
    spread = [np.ptp([a / s for a, s in group]) for group in groups]
    found = explained_variation([totals_of(group) for group in groups])
    assert (found.groups, found.records) == (len(groups), sum(map(len, groups)))
    if max(spread) < 1e-9:
        assert found.p_value in {0.0, 1.0}
        return
    explained, f, p_value = by_brute_force(groups)
    assert found.explained == pytest.approx(explained, abs=1e-9)
    assert found.f == pytest.approx(f, rel=1e-6, abs=1e-9)
    assert found.p_value == pytest.approx(p_value, rel=1e-5, abs=1e-12)


def test_merging_rows_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    groups = [
        totals_of([(int(rng.binomial(30, share)), 10) for _ in range(300)]) for share in (0.2, 0.5)
    ]
    merged = [Totals(g.columns, g.rows.sum(axis=0, keepdims=True)) for g in groups]
    assert explained_variation(merged) == explained_variation(groups)


def test_a_mixture_behind_one_mean_comes_out() -> None:
    never, always = [[50, 0, 0, 0, 0]] * 6, [[0, 0, 0, 0, 50]] * 6
    halves = [of_histograms([*never[:3], *always[:3]])] * 2
    choice = best_key({"half": halves, "kind": [of_histograms(never), of_histograms(always)]})
    assert choice.key == "kind"
    assert choice.tried["kind"].explained == pytest.approx(1)
    assert choice.tried["kind"].p_value == 0
    half = choice.tried["half"]
    assert half.explained == 0
    assert half.p_value == pytest.approx(1)


def test_a_noisy_mixture_comes_out_too() -> None:
    rng = np.random.default_rng(4)
    groups = [
        of_histograms([rng.multinomial(50, shares).tolist() for _ in range(8)])
        for shares in ([0.9, 0.05, 0.03, 0.01, 0.01], [0.1, 0.1, 0.1, 0.2, 0.5])
    ]
    assert best_key({"kind": groups}).key == "kind"


def random_split(rng: np.random.Generator, groups: int, records: int) -> list[Totals]:
    """Records of one kind: each with its own acceptance and a length of very wide range."""
    steps = np.exp(rng.normal(3.5, 1.2, size=records)).astype(int) + 1
    accepted = rng.binomial(4 * steps, rng.beta(2, 3, size=records))
    made = np.column_stack([accepted, steps]).tolist()
    owner = rng.integers(groups, size=records)
    return [totals_of([tuple(made[i]) for i in np.flatnonzero(owner == g)]) for g in range(groups)]


def test_records_of_one_kind_are_not_split() -> None:
    rng = np.random.default_rng(9)
    found = [
        best_key({"a": random_split(rng, 2, 60), "b": random_split(rng, 6, 90)}).key
        for _ in range(300)
    ]
    assert sum(key is not None for key in found) <= 6


def test_the_test_holds_its_level_where_long_answers_are_few() -> None:
    rng = np.random.default_rng(10)
    rejected = 0
    for _ in range(400):
        short, long = rng.beta(2, 3, size=(2, 400))
        groups = [
            totals_of([(int(4 * 10 * p), 10) for p in short]),
            totals_of([(int(4 * 1000 * p), 1000) for p in long[:6]]),
        ]
        p_value = explained_variation(groups).p_value
        rejected += p_value is not None and p_value < 0.05
    # 20 are expected; the plain F test rejects in most of the 400.
    assert 5 <= rejected <= 45


def test_a_stronger_key_wins_and_a_finer_one_of_the_same_worth_loses() -> None:
    rng = np.random.default_rng(6)

    def group(share: float, records: int = 12) -> list[tuple[int, int]]:
        return [(int(rng.binomial(120, share)), 40) for _ in range(records)]

    low, high = group(0.2), group(0.7)
    kind = [totals_of(low), totals_of(high)]
    mixed = [totals_of(low[:9] + high[:3]), totals_of(low[9:] + high[3:])]
    assert best_key({"mixed": mixed, "kind": kind}).key == "kind"
    # No variation within: both explain all of it, and the finer one needs more groups.
    flat = [(20, 10)] * 6, [(40, 10)] * 6
    finer = [totals_of(flat[0]), totals_of(flat[1]), totals_of(flat[1])]
    coarse = [totals_of(flat[0]), totals_of(flat[1] * 2)]
    assert best_key({"finer": finer, "coarse": coarse}).key == "coarse"


def test_groups_of_few_records_are_left_out_and_counted() -> None:
    found = explained_variation(
        [totals_of([(1, 5), (3, 5), (2, 5), (0, 5), (4, 5)]), totals_of([(5, 5)] * 4)]
    )
    assert (found.explained, found.f, found.p_value) == (None, None, None)
    assert (found.groups, found.records) == (1, 5)
    assert (found.left_out_groups, found.left_out_records) == (1, 4)


def test_a_key_that_leaves_out_most_records_is_not_chosen() -> None:
    kind = [totals_of([(0, 50)] * 5), totals_of([(200, 50)] * 5)]
    assert best_key({"kind": kind}).key == "kind"
    strays = [totals_of([(100, 50)])] * 11
    assert best_key({"kind": kind + strays}).key is None


def test_records_without_steps_are_no_evidence() -> None:
    idle = totals_of([(0, 0)] * 20)
    found = explained_variation([idle, totals_of([(1, 5)] * 5)])
    assert (found.groups, found.records, found.explained) == (1, 5, None)
    assert best_key({}).key is None
