"""Three emitted tokens have the target's joint distribution, whatever was drafted.

And where that must not be so, the same test says it: it could fail.
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.engine.adaptive.estimates import as_they_say, log_odds_of
from tests.engine.verification.toys import (
    NEVER,
    TARGET,
    VOCABULARY,
    ArbitraryDrafter,
    K,
    TableDrafter,
    Trim,
    bonferroni,
    joint_p_value,
    samplings,
    speculate,
    table,
)

from outrider.engine.adaptive.budget import best_budget
from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import SamplingParameters
from outrider.engine.verification.base import Verifier
from outrider.engine.verification.block import BlockVerifier
from outrider.engine.verification.fly import FlyVerifier
from outrider.engine.verification.standard import StandardVerifier

LOSSLESS: list[Verifier] = [StandardVerifier(), BlockVerifier()]
PLAIN = SamplingParameters(1.0, seed=0)
OTHER = table(8)

CASES: dict[str, tuple[TableDrafter | ArbitraryDrafter, SamplingParameters]] = {
    "arbitrary tokens with certainty": (ArbitraryDrafter(), PLAIN),
    "another model's argmax": (TableDrafter(OTHER, "greedy"), PLAIN),
    "q of another model": (TableDrafter(OTHER), PLAIN),
    "q that is p": (TableDrafter(TARGET), PLAIN),
    "q where p is not": (TableDrafter(-4 * TARGET), PLAIN),
    "p and q at 0.7": (TableDrafter(OTHER), replace(PLAIN, temperature=0.7)),
    "top-k with q of the same temperature": (TableDrafter(TARGET), replace(PLAIN, top_k=2)),
    "top-p with q of the same temperature": (TableDrafter(OTHER), replace(PLAIN, top_p=0.7)),
    "top-p with q of another temperature": (
        TableDrafter(TARGET, temperature=2.0),
        replace(PLAIN, temperature=0.8, top_p=0.7),
    ),
}
"""What is drafted and how the target samples."""

ENOUGH = bonferroni(2 * len(CASES))


def names(verifier: Verifier) -> str:
    return verifier.name


@pytest.mark.parametrize("verifier", LOSSLESS, ids=names)
@pytest.mark.parametrize("case", CASES)
def test_a_lossless_rule_leaves_the_joint_distribution_alone(verifier: Verifier, case: str) -> None:
    assert verifier.lossless
    drafter, parameters = CASES[case]
    assert joint_p_value(speculate(verifier, drafter, parameters), parameters) > ENOUGH


def test_fly_does_not() -> None:
    fly = FlyVerifier(window=1, entropy_threshold=0.3)
    assert not fly.lossless
    assert joint_p_value(speculate(fly, TableDrafter(OTHER), PLAIN), PLAIN) < NEVER
    assert joint_p_value(speculate(fly, TableDrafter(OTHER, "greedy"), PLAIN), PLAIN) < NEVER


@pytest.mark.parametrize("verifier", LOSSLESS, ids=names)
def test_an_argmax_draft_with_the_q_of_a_softmax_does_not(verifier: Verifier) -> None:
    liar = TableDrafter(OTHER, "greedy", claims=OTHER)
    assert joint_p_value(speculate(verifier, liar, PLAIN), PLAIN) < NEVER


def test_a_draft_with_the_q_of_another_temperature_does_not() -> None:
    liar = TableDrafter(OTHER, temperature=0.5, claims=OTHER)
    assert joint_p_value(speculate(StandardVerifier(), liar, PLAIN), PLAIN) < NEVER


def test_the_joint_distribution_would_show_a_target_that_is_slightly_off() -> None:
    triples = speculate(BlockVerifier(), TableDrafter(OTHER), PLAIN)
    assert joint_p_value(triples, replace(PLAIN, temperature=0.9)) < NEVER


# Which tokens of a draft are verified may depend on what came before a token, not on the token
# itself: whoever cuts a draft by a grammar, or by what it promises, has to keep to that.


def confidence(draft: Draft) -> NDArray[np.float64]:
    """What a drafter thought of each position before it drew the token there."""
    assert draft.probabilities is not None
    return draft.probabilities.max(dim=-1).values.double().numpy()


def up_to_the_first_doubt(draft: Draft) -> NDArray[np.int64]:
    sure = confidence(draft) >= 0.55
    return np.where(sure.all(axis=1), K, sure.argmin(axis=1))


def all_if_the_second_is_sure(draft: Draft) -> NDArray[np.int64]:
    return np.where(confidence(draft)[:, 1] >= 0.55, K, 0)


def up_to_the_first_token_3(draft: Draft) -> NDArray[np.int64]:
    forbidden = draft.tokens == 3
    return np.where(forbidden.any(axis=1), forbidden.argmax(axis=1), K)


def what_pays(*costs: float, in_order: bool) -> Trim:
    """What adaptive verification keeps of each draft when 1, 2, 3 and 4 rows cost so much."""
    cost = CostCurve.of(dict(enumerate(costs, start=1)))

    def trim(draft: Draft) -> NDArray[np.int64]:
        kept = [
            best_budget(
                log_odds_of(confident[None]),
                drafted[None],
                as_they_say(K),
                plain_rows=1,
                sampling=1,
                spent_s=0.0,
                cost=cost,
                in_order=in_order,
            ).lengths
            for confident, drafted in zip(confidence(draft), draft.lengths, strict=True)
        ]
        return np.concatenate(kept)

    return trim


@pytest.mark.parametrize("verifier", LOSSLESS, ids=names)
@pytest.mark.parametrize("costs", [(1.0, 1.3, 1.6, 1.9), (1.0, 1.4, 1.8, 2.2)])
def test_adaptive_verification_leaves_the_joint_distribution_alone(
    verifier: Verifier, costs: tuple[float, ...]
) -> None:
    trim = what_pays(*costs, in_order=True)
    contexts = np.random.default_rng(0).integers(0, VOCABULARY, (500, 2))
    cut = trim(TableDrafter(OTHER).draft(contexts, samplings(PLAIN, 500)))
    assert len(set(cut.tolist())) > 1
    triples = speculate(verifier, TableDrafter(OTHER), PLAIN, trim=trim)
    assert joint_p_value(triples, PLAIN) > ENOUGH


def test_and_would_not_if_it_looked_beyond_a_sampled_token() -> None:
    trim = what_pays(1.0, 2.0, 2.02, 2.04, in_order=False)
    triples = speculate(StandardVerifier(), TableDrafter(OTHER), PLAIN, trim=trim)
    assert joint_p_value(triples, PLAIN) < NEVER


@pytest.mark.parametrize("verifier", LOSSLESS, ids=names)
def test_a_draft_may_be_cut_by_what_was_known_before_each_token(verifier: Verifier) -> None:
    triples = speculate(verifier, TableDrafter(OTHER), PLAIN, trim=up_to_the_first_doubt)
    assert joint_p_value(triples, PLAIN) > ENOUGH


@pytest.mark.parametrize("trim", [all_if_the_second_is_sure, up_to_the_first_token_3])
def test_a_sampled_draft_cut_by_the_tokens_themselves_shifts_the_distribution(trim: Trim) -> None:
    triples = speculate(StandardVerifier(), TableDrafter(OTHER), PLAIN, trim=trim)
    assert joint_p_value(triples, PLAIN) < NEVER


def test_an_argmax_draft_may_be_cut_by_anything() -> None:
    drafter = TableDrafter(OTHER, "greedy")
    triples = speculate(BlockVerifier(), drafter, PLAIN, trim=up_to_the_first_token_3)
    assert joint_p_value(triples, PLAIN) > ENOUGH
