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
        if length := adaptive.draft_length(K, plain_rows=2):
            nothing = Draft.empty(2, K)
            assert adaptive.trim(batch, nothing, plain_rows=2, spent_s=0.002) is nothing
            adaptive.learn(batch, nothing, np.zeros(2, np.int64))
        asked.append(length)
    assert asked[0] == K
    assert np.count_nonzero(asked[200:]) < 20


def asked(adaptive: AdaptiveVerification, last: list[float], most: int = K) -> list[bool]:
    """Which drafts to go on with that have one token each, of the log-odds `last`."""
    count = len(last)
    found: list[bool] = adaptive.going_on(
        np.array([last]).T, np.ones(count, np.int64), np.full(count, most)
    ).tolist()
    return found


def drafting(count: int, token_s: float) -> AdaptiveVerification:
    """One that knows what a token costs to draft, after a step in which it was nearly right."""
    adaptive, batch = AdaptiveVerification(CostCurve.of({1: 0.010, 2: 0.011}), K), requests(count)
    for _ in range(3):
        adaptive.draft_length(K, plain_rows=count)
        adaptive.trim(batch, full(count), plain_rows=count, spent_s=K * token_s)
    return adaptive


def test_a_sure_draft_is_gone_on_with_and_an_unsure_one_ends() -> None:
    assert asked(drafting(3, 0.001), [6.0, -6.0, 6.0]) == [True, False, True]


def test_no_draft_is_gone_on_with_where_a_token_costs_a_step() -> None:
    assert asked(drafting(2, 0.010), [6.0, 6.0]) == [False, False]


def test_sure_drafts_are_gone_on_with_together_where_a_token_costs_too_much_for_one() -> None:
    assert asked(drafting(4, 0.005), [6.0, -6.0, -6.0, -6.0]) == [False] * 4
    assert asked(drafting(4, 0.005), [6.0, 6.0, 6.0, -6.0]) == [True, True, True, False]


def test_what_is_no_number_ends_a_draft() -> None:
    assert asked(drafting(2, 0.001), [float("nan"), 6.0]) == [False, True]


def test_where_none_pays_each_is_gone_on_with_now_and_then() -> None:
    adaptive, batch, token_s = drafting(3, 0.004), requests(3), 0.004
    seen = []
    for _ in range(3_000):
        on = asked(adaptive, [-6.0] * 3)
        assert sum(on) <= 1
        seen.append(on)
        adaptive.trim(batch, full(3).cut(np.ones(3, np.int64)), plain_rows=3, spent_s=token_s)
    share = np.array(seen).sum(axis=0)
    assert (share > 0).all()
    assert share.sum() * token_s <= 1.1 * EXPLORING_SHARE * 3_000 * adaptive.cost.step_s(6)


def test_long_contexts_which_a_step_reads_anyway_make_drafts_pay() -> None:
    sampling = Sampling.seeded(SamplingParameters())
    verified = []
    for prompt_tokens in (64, 20_000):
        batch = [
            Sequence(str(i), [1] * prompt_tokens, max_tokens=9, sampling=sampling) for i in range(4)
        ]
        adaptive = AdaptiveVerification(replace(STEEP, cached_token_s=1e-6), K)
        serve(adaptive, batch, good=2, steps=400)
        verified.append(serve(adaptive, batch, good=2, steps=400).mean())
    # Of 120 ms each of four rows is a twelfth, of 40 ms a quarter.
    assert verified[1] > verified[0] + 0.5
