"""Under drafts of every kind the output follows the target's law, masked and renormalised."""

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.engine.verification.toys import (
    NEVER,
    TARGET,
    VOCABULARY,
    ArbitraryDrafter,
    TableDrafter,
    Tokens,
    bonferroni,
    joint_p_value,
    speculate,
    table,
)

from outrider.engine.constraints.step import ConstrainedStep
from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import SamplingParameters
from outrider.engine.verification.base import Verifier
from outrider.engine.verification.block import BlockVerifier
from outrider.engine.verification.standard import StandardVerifier

MAY_FOLLOW = np.array([[1, 1, 1, 0], [1, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 1]], np.bool_)
"""Which token may come after which."""
MASKED = torch.where(torch.from_numpy(MAY_FOLLOW), TARGET, -math.inf)
PLAIN = SamplingParameters(1.0, seed=0)
OTHER = table(8)
DRAFTERS: dict[str, TableDrafter | ArbitraryDrafter] = {
    "arbitrary tokens with certainty": ArbitraryDrafter(),
    "another model's argmax": TableDrafter(OTHER, "greedy"),
    "q of another model": TableDrafter(OTHER),
    "q that is p but for the mask": TableDrafter(TARGET),
    "q mostly of what is forbidden": TableDrafter(
        torch.from_numpy(np.where(MAY_FOLLOW, 0.0, 2.0)).float().expand_as(TARGET) + OTHER
    ),
}
VERIFIERS: list[Verifier] = [StandardVerifier(), BlockVerifier()]


@dataclass
class Following:
    """A constraint that looks at the last token alone."""

    last: int
    ended: bool = False
    failure: str | None = None

    def allow(self, drafted: NDArray[np.int32], allowed: NDArray[np.bool_]) -> int:
        last, standing = self.last, 0
        for token in drafted.tolist():
            allowed[standing] = MAY_FOLLOW[last]
            if not MAY_FOLLOW[last, token]:
                return standing
            last = token
            standing += 1
        allowed[standing] = MAY_FOLLOW[last]
        return standing

    def advance(self, token: int) -> None:
        self.last = token


def constrain(context: Tokens, draft: Draft) -> Draft:
    batch: list[Any] = [
        SimpleNamespace(constraint=Following(last)) for last in context[:, 1].tolist()
    ]
    return ConstrainedStep.of(batch, draft, VOCABULARY).draft


@pytest.mark.parametrize("verifier", VERIFIERS, ids=lambda verifier: verifier.name)
@pytest.mark.parametrize("drafter", DRAFTERS)
def test_the_joint_distribution_is_that_of_the_masked_target(
    verifier: Verifier, drafter: str
) -> None:
    triples = speculate(verifier, DRAFTERS[drafter], PLAIN, constrain=constrain, target=MASKED)
    assert joint_p_value(triples, PLAIN, MASKED) > bonferroni(len(DRAFTERS) * len(VERIFIERS))


def test_and_would_not_be_if_q_kept_what_is_forbidden() -> None:
    def cut_alone(context: Tokens, draft: Draft) -> Draft:
        return draft.cut(constrain(context, draft).lengths)

    drafter = DRAFTERS["q of another model"]
    triples = speculate(StandardVerifier(), drafter, PLAIN, constrain=cut_alone, target=MASKED)
    assert joint_p_value(triples, PLAIN, MASKED) < NEVER
