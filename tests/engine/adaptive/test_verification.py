"""What is verified of drafts while it is learned how they fare."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.verification import EXPLORING_SHARE, AdaptiveVerification
from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.sequence import Sequence

STEEP = CostCurve.of({1: 0.010, 2: 0.020})
"""Every further row costs as much as the first: no draft pays unless it is nearly sure."""
FLAT = CostCurve.of({1: 0.010, 100: 0.010})
K = 4


def requests(count: int) -> list[Sequence]:
    sampling = Sampling.seeded(SamplingParameters())
    return [Sequence(str(i), [1, 2], max_tokens=9, sampling=sampling) for i in range(count)]


def full(batch: int) -> Draft:
    return Draft(np.ones((batch, K), np.int32), np.full(batch, K))


def serve(
    adaptive: AdaptiveVerification, batch: list[Sequence], *, good: int, steps: int
) -> NDArray[np.int64]:
    """Verify full drafts, of which `good` tokens are right, and return the lengths [steps, B]."""
    seen = []
    for _ in range(steps):
        draft = adaptive.trim(batch, full(len(batch)), plain_rows=len(batch), spent_s=0.0)
        adaptive.learn(batch, draft, np.minimum(draft.lengths, good))
        seen.append(draft.lengths)
    return np.array(seen)


@pytest.mark.parametrize("count", [1, 4, 16])
def test_what_does_not_pay_takes_no_more_time_than_its_share(count: int) -> None:
    adaptive, batch = AdaptiveVerification(STEEP, K), requests(count)
    serve(adaptive, batch, good=0, steps=400)
    rows = serve(adaptive, batch, good=0, steps=2000).sum(axis=1)
    base_s = 2000 * float(STEEP.cost_s(np.array([count]))[0])
    extra_s = float(STEEP.cost_s(count + rows).sum()) - base_s
    assert 0 < extra_s <= 1.1 * EXPLORING_SHARE * base_s


def test_every_request_is_looked_at_again() -> None:
    adaptive, batch = AdaptiveVerification(STEEP, K), requests(7)
    serve(adaptive, batch, good=0, steps=400)
    assert (serve(adaptive, batch, good=0, steps=1500).sum(axis=0) > 0).all()


def test_drafts_that_become_good_are_found_and_verified_in_full() -> None:
    cost = CostCurve.of({1: 0.010, 2: 0.011})
    adaptive, batch = AdaptiveVerification(cost, K), requests(4)
    assert serve(adaptive, batch, good=0, steps=500)[-100:].mean() < K / 4
    assert serve(adaptive, batch, good=K, steps=1000)[-100:].mean() > K - 0.5


def test_drafts_that_become_bad_are_given_up() -> None:
    adaptive, batch = AdaptiveVerification(STEEP, K), requests(4)
    serve(adaptive, batch, good=K, steps=500)
    assert serve(adaptive, batch, good=0, steps=500)[-100:].mean() < 0.1


def test_where_rows_cost_nothing_everything_is_verified() -> None:
    adaptive, batch = AdaptiveVerification(FLAT, K), requests(3)
    assert (serve(adaptive, batch, good=K, steps=50) == K).all()


def test_nothing_is_verified_beyond_a_draft() -> None:
    adaptive, batch = AdaptiveVerification(FLAT, K), requests(2)
    short = full(2).cut(np.array([0, 2]))
    trimmed = adaptive.trim(batch, short, plain_rows=2, spent_s=0.0)
    assert trimmed.lengths.tolist() == [0, 2]


def test_a_table_may_be_wider_than_its_drafts_are_long() -> None:
    adaptive, batch = AdaptiveVerification(FLAT, K), requests(2)
    wide = Draft(
        np.ones((2, K + 3), np.int32), np.array([K, 1]), log_odds=np.zeros((2, K + 3), np.float64)
    )
    trimmed = adaptive.trim(batch, wide, plain_rows=2, spent_s=0.0)
    adaptive.learn(batch, trimmed, np.array([1, 1]))
    assert trimmed.lengths.tolist() == [K, 1]


def test_a_length_of_match_that_fared_better_is_verified_further() -> None:
    cost = CostCurve.of({1: 0.010, 2: 0.012})
    adaptive = AdaptiveVerification(cost, K)
    matched = np.array([4, 2])
    for _ in range(400):  # each request comes once, so that its own record says nothing
        batch = requests(2)
        draft = adaptive.trim(
            batch, replace(full(2), matched_tokens=matched), plain_rows=2, spent_s=0.0
        )
        adaptive.learn(batch, draft, np.minimum(draft.lengths, [K, 0]))
    long, short = draft.lengths.tolist()
    assert long == K
    assert short <= 1


def test_a_drafter_that_finds_nothing_has_nothing_trimmed_and_is_asked_less() -> None:
    adaptive, batch = AdaptiveVerification(STEEP, K), requests(2)
    asked = []
    for _ in range(400):
        if length := adaptive.draft_length(K):
            nothing = Draft.empty(2, K)
            assert adaptive.trim(batch, nothing, plain_rows=2, spent_s=0.002) is nothing
            adaptive.learn(batch, nothing, np.zeros(2, np.int64))
        asked.append(length)
    assert asked[0] == K
    assert np.count_nonzero(asked[200:]) < 20
