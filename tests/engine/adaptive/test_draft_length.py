"""How much is drafted, against the best that any fixed length could do.

Drafters tell nothing of their tokens, or their log-odds, or also ask whether to go on with a draft.

Time is made up here: what a step takes by its rows, what drafting takes by its tokens.
"""

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.verification import AdaptiveVerification
from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.sequence import Sequence

K = 6
PROMPT_S = 0.010
SAMPLING = Sampling.seeded(SamplingParameters())
Telling = Literal["nothing", "log-odds", "log-odds, and asks"]
TELLING: tuple[Telling, ...] = get_args(Telling)


@dataclass(frozen=True)
class World:
    """Step costs, a drafter's costs, and how often its tokens are right, if those before were.

    With a `spread` some tokens are right more often than others: it is that of their log-odds.
    """

    cost: CostCurve
    fixed_s: float
    token_s: float
    right: float
    requests: int
    spread: float = 0.0

    def drafting_s(self, tokens: int) -> float:
        return self.fixed_s + self.token_s * tokens if tokens else 0.0

    def step_s(self, rows: int) -> float:
        return float(self.cost.cost_s(np.array([rows]))[0])

    def log_odds(self, random: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Those of `count` tokens of each request."""
        usual = np.log(self.right / (1 - self.right))
        shape = (self.requests, count)
        found: NDArray[np.float64] = usual + self.spread * random.standard_normal(shape)
        return found

    def fixed_rate(self, k: int) -> float:
        """Tokens per second where every step drafts and verifies `k` tokens of each request."""
        many = replace(self, requests=1).log_odds(np.random.default_rng(0), 100_000)
        mean_right = float(expit(many).mean())
        tokens = self.requests * float((mean_right ** np.arange(k + 1)).sum())
        return tokens / (self.drafting_s(k) + self.step_s(self.requests * (k + 1)))


def lengths_gone_on_with(
    adaptive: AdaptiveVerification, log_odds: NDArray[np.float64]
) -> NDArray[np.int64]:
    """How long drafts of up to `log_odds` [B, k] become, which are made token by token."""
    batch, k = log_odds.shape
    lengths = np.ones(batch, np.int64)
    most = np.full(batch, k)
    for made in range(1, k):
        most = np.where(adaptive.going_on(log_odds[:, :made], lengths, most), k, lengths)
        if (most == lengths).all():
            break
        lengths = lengths + (most > lengths)
    return lengths


def rate_of(
    adaptive: AdaptiveVerification,
    world: World,
    *,
    steps: int,
    tells: Telling = "nothing",
    seed: int = 0,
    most: int = K,
    prompt_every: int = 0,
) -> tuple[float, NDArray[np.int64]]:
    """Expected tokens per second over `steps`, and the longest draft of each of them.

    Before every so many of them a request has come, whose prompt the drafter reads in `PROMPT_S`.
    """
    random = np.random.default_rng(seed)
    batch = [
        Sequence(str(i), [1, 2], max_tokens=9, sampling=SAMPLING) for i in range(world.requests)
    ]
    tokens = seconds = 0.0
    longest = np.zeros(steps, np.int64)
    for step in range(steps):
        reads = bool(prompt_every) and step % prompt_every == 0
        if reads:
            batch[0] = Sequence(f"after {step}", [1, 2], max_tokens=9, sampling=SAMPLING)
            batch[0].append([3])
        elif len(batch[0]) == 3:
            batch[0].append([4])
        k = adaptive.draft_length(most, plain_rows=world.requests)
        verified = 0
        if k:
            odds = world.log_odds(random, k)
            full = np.full(world.requests, k)
            asks = tells == "log-odds, and asks"
            made = lengths_gone_on_with(adaptive, odds) if asks else full
            told = None if tells == "nothing" else odds
            drafted = Draft(np.ones((world.requests, k), np.int32), full, log_odds=told).cut(made)
            longest[step] = made.max()
            spent_s = world.drafting_s(int(made.max())) + PROMPT_S * reads
            draft = adaptive.trim(batch, drafted, plain_rows=world.requests, spent_s=spent_s)
            chances = expit(odds)
            right = random.random(chances.shape) < chances
            accepted = np.minimum(right.cumprod(axis=1).sum(axis=1), draft.lengths)
            adaptive.learn(batch, draft, accepted)
            kept = np.arange(k) < draft.lengths[:, None]
            tokens += float(chances.cumprod(axis=1)[kept].sum())
            verified = int(draft.lengths.sum())
            seconds += spent_s
        tokens += world.requests
        seconds += world.step_s(world.requests + verified)
    return tokens / seconds, longest


MEASURED = CostCurve.of({1: 0.0100, 9: 0.0135, 17: 0.017, 33: 0.023, 65: 0.038, 113: 0.062})
"""About what two cores take for a small model."""

WORLDS = {
    "cheap and right": World(MEASURED, 0.0001, 0.0, 0.8, 1),
    "cheap and wrong": World(MEASURED, 0.0001, 0.0, 0.05, 1),
    "cheap and wrong, sixteen at once": World(MEASURED, 0.0004, 0.0, 0.05, 16),
    "a small model, often right": World(MEASURED, 0.0, 0.0008, 0.75, 1),
    "a small model, rarely right": World(MEASURED, 0.0, 0.0025, 0.28, 1),
    "a small model, right at one position": World(MEASURED, 0.0, 0.0012, 0.45, 1),
    "a small model, four at once": World(MEASURED, 0.0, 0.0015, 0.5, 4),
    "a model as dear as the target": World(MEASURED, 0.0, 0.0100, 0.9, 1),
    "a model far dearer than the target": World(MEASURED, 0.0, 0.0400, 0.6, 4),
    "all in one pass": World(MEASURED, 0.003, 0.0, 0.7, 1),
    "all in one pass, which does not pay": World(MEASURED, 0.008, 0.0, 0.4, 4),
}


@pytest.mark.parametrize("tells", TELLING)
@pytest.mark.parametrize("name", WORLDS)
def test_no_fixed_length_is_more_than_two_per_cent_better(name: str, tells: Telling) -> None:
    world = WORLDS[name]
    adaptive = AdaptiveVerification(world.cost, K)
    rate_of(adaptive, world, steps=300, tells=tells, seed=1)
    rate, _ = rate_of(adaptive, world, steps=4_000, tells=tells)
    assert rate > 0.98 * max(world.fixed_rate(k) for k in range(K + 1))


def test_what_does_not_pay_costs_a_few_steps_at_the_start_and_half_a_per_cent_after() -> None:
    world = WORLDS["a model far dearer than the target"]
    adaptive = AdaptiveVerification(world.cost, K)
    rate, lengths = rate_of(adaptive, world, steps=100)
    assert np.flatnonzero(lengths).max() < 4
    assert 100 * world.requests / rate < (100 + 50) * world.step_s(world.requests)
    rate, lengths = rate_of(adaptive, world, steps=20_000)
    assert lengths.any()
    assert rate > 0.993 * world.fixed_rate(0)


@pytest.mark.parametrize("tells", TELLING)
def test_what_it_takes_a_draft_model_to_read_prompts_is_not_held_against_its_drafts(
    tells: Telling,
) -> None:
    world = WORLDS["a small model, four at once"]
    drafted = []
    for prompt_every in (0, 4):
        adaptive = AdaptiveVerification(world.cost, K)
        rate_of(adaptive, world, steps=300, tells=tells, prompt_every=prompt_every)
        _, lengths = rate_of(
            adaptive, world, steps=1_000, tells=tells, seed=1, prompt_every=prompt_every
        )
        drafted.append(float(lengths.mean()))
    assert drafted[1] == pytest.approx(drafted[0], rel=0.15)


def test_where_a_request_comes_before_every_step_drafts_that_pay_are_still_made() -> None:
    world = WORLDS["a small model, often right"]
    adaptive = AdaptiveVerification(world.cost, K)
    rate_of(adaptive, world, steps=300, prompt_every=1)
    _, lengths = rate_of(adaptive, world, steps=300, prompt_every=1)
    assert np.median(lengths) > 0


def test_a_trial_is_two_steps_since_a_model_that_paused_has_to_catch_up() -> None:
    world = WORLDS["a model far dearer than the target"]
    adaptive = AdaptiveVerification(world.cost, K)
    rate_of(adaptive, world, steps=100)
    _, lengths = rate_of(adaptive, world, steps=40_000)
    drafted = np.flatnonzero(lengths)
    assert set(lengths[drafted].tolist()) == {1, K}  # the shortest loses least
    assert (lengths[drafted[::2]] == lengths[drafted[1::2]]).all()
    assert (np.diff(drafted)[::2] == 1).all()
    assert (np.diff(drafted)[1::2] > 100).all()


@pytest.mark.parametrize("requests", [1, 4])
def test_a_drafter_that_asks_is_ahead_of_every_fixed_length(requests: int) -> None:
    world = World(MEASURED, 0.0, 0.0012, 0.6, requests, spread=2.0)
    adaptive = AdaptiveVerification(world.cost, K)
    rate_of(adaptive, world, steps=600, tells="log-odds, and asks", seed=1)
    rate, longest = rate_of(adaptive, world, steps=4_000, tells="log-odds, and asks")
    assert rate > 1.03 * max(world.fixed_rate(k) for k in range(K + 1))
    assert set(longest.tolist()) >= {1, 2, 3}


@pytest.mark.parametrize("tells", TELLING)
def test_drafts_that_become_good_are_found(tells: Telling) -> None:
    bad, good = WORLDS["a small model, rarely right"], WORLDS["a small model, often right"]
    adaptive = AdaptiveVerification(MEASURED, K)
    rate_of(adaptive, bad, steps=1_000, tells=tells)
    rate_of(adaptive, good, steps=3_000, tells=tells)
    rate, _ = rate_of(adaptive, good, steps=1_000, tells=tells)
    assert rate > 0.97 * max(good.fixed_rate(k) for k in range(K + 1))


def test_as_much_is_drafted_as_pays() -> None:
    world = WORLDS["a small model, right at one position"]
    best = max(range(K + 1), key=world.fixed_rate)
    assert 0 < best < K
    adaptive = AdaptiveVerification(world.cost, K)
    rate_of(adaptive, world, steps=1_000, tells="log-odds")
    _, lengths = rate_of(adaptive, world, steps=1_000, tells="log-odds")
    assert abs(float(np.median(lengths)) - best) <= 1


def test_no_more_is_drafted_than_can_be_used_and_that_says_nothing_of_longer_drafts() -> None:
    world = WORLDS["a small model, often right"]
    adaptive = AdaptiveVerification(world.cost, K)
    rate_of(adaptive, world, steps=500, tells="log-odds")
    known = [replace(position) for position in adaptive._length._positions[1:]]
    assert min(position.promised for position in known[:3]) > 0
    _, lengths = rate_of(adaptive, world, steps=200, tells="log-odds", most=1)
    assert lengths.max() == 1
    assert adaptive._length._positions[1:] == known
