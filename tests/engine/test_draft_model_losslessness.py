"""Drafting with a model of its own changes no output: token for token, and in distribution."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.drafting.own import drafter_of, free
from tests.engine.loops import VOCABULARY, engine_of, finish, request
from tests.engine.models.configs import config_of
from tests.engine.test_loop_losslessness import (
    MIXED,
    REQUESTS,
    SEQUENCES,
    Outputs,
    answer_all,
    answer_mixed,
    asked,
    eager,
    fused,
    totals,
)
from tests.engine.verification.toys import (
    DRAWS,
    EMITTED,
    TARGET,
    Tokens,
    bonferroni,
    joint_p_value,
    table,
)
from tests.engine.verification.toys import VOCABULARY as LETTERS

from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.verification import AdaptiveVerification
from outrider.engine.drafting.draft_model import ModelDrafter
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.drafting.parallel_draft_model import ParallelModelDrafter
from outrider.engine.drafting.sampling import DraftSampleMethod
from outrider.engine.drafting.shared_vocabulary import SharedVocabulary
from outrider.engine.models.base import BLOCK_TOKENS, Rows, TargetModel
from outrider.engine.sampling import SamplingParameters
from outrider.engine.verification.block import BlockVerifier

Load = Callable[[], TargetModel]


@pytest.fixture(scope="module")
def target(checkpoint: Callable[..., Path]) -> TargetModel:
    return fused(checkpoint(vocab_size=VOCABULARY, num_hidden_layers=2), "float32")


@pytest.fixture(scope="module")
def own(checkpoint: Callable[..., Path]) -> dict[str, Load]:
    """Draft models of the target's vocabulary: itself, another, and one of another family."""
    itself = checkpoint(vocab_size=VOCABULARY, num_hidden_layers=2)
    qwen = checkpoint(vocab_size=VOCABULARY, num_hidden_layers=1, model_type="qwen3")
    return {
        "itself": lambda: fused(itself, "float32"),
        "itself in few bits": lambda: fused(itself, "int8"),
        "itself on another backend": lambda: eager(itself),
        "another family": lambda: fused(qwen, "float32"),
    }


NAMES = ("itself", "itself in few bits", "itself on another backend", "another family")


@pytest.fixture(scope="module")
def plain(target: TargetModel) -> Outputs:
    outputs, _ = answer_all(target, REQUESTS, NoDrafter(), 0, together=1)
    return outputs


@pytest.fixture(scope="module")
def mixed(target: TargetModel) -> Outputs:
    return answer_mixed(target, NoDrafter(), 0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [1, 5])
def test_a_draft_model_gives_the_output_of_plain_decoding(
    target: TargetModel, own: dict[str, Load], plain: Outputs, name: str, k: int
) -> None:
    drafter = drafter_of(own[name]())
    outputs, steps = answer_all(target, REQUESTS, drafter, k, together=SEQUENCES)
    assert outputs == plain
    drafted, accepted = totals(steps)
    if name == "itself":
        assert accepted == drafted > 0
    elif name == "itself on another backend":
        assert accepted > 0.98 * drafted  # but where rounding decides
    else:
        assert 0 < accepted < drafted
    assert free(drafter)


def another_vocabulary() -> SharedVocabulary:
    """Every token is another one to the draft model, and six it does not have."""
    order = np.random.default_rng(9).permutation(VOCABULARY)
    to_draft = np.where(order < VOCABULARY - 6, order, 0)
    ids = np.arange(VOCABULARY - 6)
    return SharedVocabulary(to_draft, torch.from_numpy(ids), np.argsort(order)[ids], len(ids))


DRAFTERS: dict[str, Callable[[TargetModel], ModelDrafter | ParallelModelDrafter]] = {
    "token by token": lambda model: drafter_of(model, max_rows=40, prefix_caching=True),
    "in one pass": lambda model: ParallelModelDrafter(
        OwnModel(model, max_rows=40, mask_token_id=5)
    ),
    "of another vocabulary": lambda model: ModelDrafter(
        OwnModel(model, max_rows=40, vocabulary=another_vocabulary())
    ),
    "of another vocabulary in one pass": lambda model: ParallelModelDrafter(
        OwnModel(model, max_rows=40, vocabulary=another_vocabulary(), mask_token_id=5)
    ),
}


@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("way", MIXED)
def test_two_hundred_mixed_requests_get_the_tokens_of_plain_decoding_seed_by_seed(
    target: TargetModel, own: dict[str, Load], mixed: Outputs, name: str, way: str
) -> None:
    drafter = DRAFTERS[name](own["itself in few bits"]())
    assert answer_mixed(target, drafter, 6, **MIXED[way]) == mixed
    assert free(drafter)


@pytest.mark.parametrize("way", MIXED)
def test_where_tokens_are_drawn_greedy_requests_still_get_those_of_plain_decoding(
    target: TargetModel, own: dict[str, Load], mixed: Outputs, way: str
) -> None:
    drafter = drafter_of(own["itself in few bits"](), "probabilistic")
    outputs = answer_mixed(target, drafter, 6, **MIXED[way])
    greedy = [name for place, (name, *_) in enumerate(REQUESTS[:200]) if asked(place).greedy]
    assert len(greedy) == 100
    assert {name: outputs[name] for name in greedy} == {name: mixed[name] for name in greedy}
    assert free(drafter)


# In distribution: a target and a draft model whose laws are tables.


class TableModel:
    """A decoder over four letters whose logits depend on the two last tokens, by a table."""

    logit_tolerance = 0.0
    num_blocks = 100
    max_length = 100

    def __init__(self, logits: torch.Tensor) -> None:
        self.config = config_of(vocab_size=LETTERS)
        self.logits = logits
        self.cache = np.zeros((self.num_blocks, BLOCK_TOKENS), np.int64)

    def forward(self, rows: Rows) -> torch.Tensor:
        tokens, positions = np.array(rows.token_ids), np.array(rows.positions)
        # No sequence here outgrows a block.
        blocks = np.array([rows.block_tables[each][0] for each in rows.sequences])
        self.cache[blocks, positions] = tokens
        before = self.cache[blocks, np.maximum(positions - 1, 0)]
        return self.logits[before, tokens][list(rows.wanted)]


OTHER = table(8)
PLAIN = SamplingParameters(1.0, seed=0)
FILLING_MASKS = "standard, in one pass"
WAYS: dict[str, Callable[[], dict[str, Any]]] = {
    "standard": dict,
    FILLING_MASKS: dict,
    "block": lambda: {"verifier": BlockVerifier()},
    "adaptive": lambda: {
        "adaptive": AdaptiveVerification(CostCurve.of({1: 1.0, 64: 20.0, 300: 300.0}), EMITTED)
    },
}


def triples(method: DraftSampleMethod, parameters: SamplingParameters, way: str) -> Tokens:
    """The first three tokens after the prompt [0, 0] of many requests, int [DRAWS, 3]."""
    own = OwnModel(TableModel(OTHER), max_rows=1_000, mask_token_id=2)
    drafter = (ParallelModelDrafter if way == FILLING_MASKS else ModelDrafter)(own, method)
    engine, _ = engine_of(TableModel(TARGET), drafter, EMITTED, **WAYS[way]())
    found = []
    for first in range(0, DRAWS, 500):
        sequences = [
            request(
                [0, 0],
                EMITTED + 2,
                str(seed),
                parameters=SamplingParameters(parameters.temperature, seed, top_p=parameters.top_p),
            )
            for seed in range(first, first + 500)
        ]
        for sequence in sequences:
            engine.add(sequence)
        finish(engine)
        found += [sequence.output_token_ids[:EMITTED].tolist() for sequence in sequences]
    assert free(drafter)
    return np.array(found)


@pytest.mark.parametrize("way", WAYS)
def test_drawn_drafts_leave_the_joint_distribution_alone(way: str) -> None:
    assert joint_p_value(triples("probabilistic", PLAIN, way), PLAIN) > bonferroni(len(WAYS) + 1)


def test_also_where_the_target_cuts_off_what_the_draft_does_not() -> None:
    cut = SamplingParameters(0.7, seed=0, top_p=0.8)
    found = triples("probabilistic", cut, "standard")
    assert joint_p_value(found, cut) > bonferroni(len(WAYS) + 1)
