"""At temperature 0 a lossless rule emits plain decoding's tokens: by every draft there is."""

from itertools import product

import numpy as np
import pytest
from tests.engine.verification.toys import TARGET, VOCABULARY, samplings, target_rows

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import SamplingParameters
from outrider.engine.verification.base import Verifier
from outrider.engine.verification.block import BlockVerifier
from outrider.engine.verification.standard import StandardVerifier

GREEDY = SamplingParameters()
DRAFTS = [path for k in range(4) for path in product(range(VOCABULARY), repeat=k)]
CONTEXTS = list(product(range(VOCABULARY), repeat=2))


def continuation(before: int, last: int, count: int) -> list[int]:
    """Plain decoding, one token at a time."""
    tokens = [before, last]
    for _ in range(count):
        tokens.append(int(TARGET[tokens[-2], tokens[-1]].argmax()))
    return tokens[2:]


@pytest.mark.parametrize("verifier", [StandardVerifier(), BlockVerifier()], ids=lambda v: v.name)
@pytest.mark.parametrize("context", CONTEXTS)
def test_every_draft_ends_in_the_same_text(verifier: Verifier, context: tuple[int, int]) -> None:
    tokens = np.full((len(DRAFTS), 3), -1, np.int32)
    for row, path in enumerate(DRAFTS):
        tokens[row, : len(path)] = path
    draft = Draft(tokens, np.array([len(path) for path in DRAFTS]))
    rows = target_rows(np.array([context] * len(DRAFTS)), draft)
    verdict = verifier.verify(rows, draft, samplings(GREEDY, len(DRAFTS)))
    expected = continuation(*context, count=4)
    for path, accepted, emitted in zip(DRAFTS, verdict.accepted, verdict.emitted, strict=True):
        matching = next((i for i, t in enumerate(path) if t != expected[i]), len(path))
        assert accepted == matching
        assert emitted.tolist() == expected[: matching + 1]
