"""Drafting with a model of its own changes no output: token for token, and in distribution."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.engine.drafting.own import drafter_of, free
from tests.engine.loops import VOCABULARY, engine_of, finish, request
from tests.engine.models.configs import config_of
from tests.engine.test_loop_losslessness import (
    LOSSLESS,
    MIXED,
    REQUESTS,
    SEQUENCES,
    Outputs,
    Steps,
    answer_all,
    answer_mixed,
    asked,
    eager,
    fused,
    greedy,
    totals,
)
from tests.engine.verification.toys import (
    DRAWS,
    EMITTED,
    NEVER,
    TARGET,
    Tokens,
    bonferroni,
    joint_p_value,
    p_value,
    table,
)
from tests.engine.verification.toys import VOCABULARY as LETTERS

from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.verification import AdaptiveVerification
from outrider.engine.drafting.base import DraftJudge
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
    return answer_mixed(target, NoDrafter(), 0)[0]


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


Make = Callable[
    [TargetModel, DraftSampleMethod, DraftJudge | None], ModelDrafter | ParallelModelDrafter
]
DRAFTERS: dict[str, Make] = {
    "token by token": lambda model, method, judge: drafter_of(
        model, method, max_rows=40, prefix_caching=True, judge=judge
    ),
    "in one pass": lambda model, method, judge: ParallelModelDrafter(
        OwnModel(model, max_rows=40, mask_token_id=5), method, confident=judge is not None
    ),
    "of another vocabulary": lambda model, method, judge: ModelDrafter(
        OwnModel(model, max_rows=40, vocabulary=another_vocabulary()), method, judge=judge
    ),
    "of another vocabulary in one pass": lambda model, method, judge: ParallelModelDrafter(
        OwnModel(model, max_rows=40, vocabulary=another_vocabulary(), mask_token_id=5),
        method,
        confident=judge is not None,
    ),
}
ONE_VOCABULARY = ("token by token", "in one pass")
"""Those that may also draw their tokens: of another vocabulary a draft is always greedy."""


@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("way", MIXED)
def test_two_hundred_mixed_requests_get_the_tokens_of_plain_decoding_seed_by_seed(
    target: TargetModel, own: dict[str, Load], mixed: Outputs, name: str, way: str
) -> None:
    judge = MIXED[way].get("adaptive")
    drafter = DRAFTERS[name](own["itself in few bits"](), "greedy", judge)
    outputs, steps = answer_mixed(target, drafter, 6, **MIXED[way])
    assert outputs == mixed
    assert_some_accepted(steps)
    assert free(drafter)


def assert_some_accepted(steps: Steps) -> None:
    drafted, accepted = totals(steps)
    assert 0 < accepted < drafted


WAYS_TO_DRAFT: list[tuple[str, DraftSampleMethod]] = [
    *((name, "greedy") for name in DRAFTERS),
    *((name, "probabilistic") for name in ONE_VOCABULARY),
]


@pytest.mark.parametrize(("name", "method"), WAYS_TO_DRAFT)
@pytest.mark.parametrize("rule", LOSSLESS)
def test_two_hundred_greedy_requests_get_the_tokens_of_plain_decoding(
    target: TargetModel,
    own: dict[str, Load],
    plain: Outputs,
    name: str,
    rule: str,
    method: DraftSampleMethod,
) -> None:
    drafter = DRAFTERS[name](own["itself in few bits"](), method, None)
    outputs, steps = answer_mixed(target, drafter, 6, asking=greedy, verifier=LOSSLESS[rule])
    assert outputs == {each: plain[each] for each in outputs}
    assert_some_accepted(steps)
    assert free(drafter)


@pytest.mark.parametrize("name", ONE_VOCABULARY)
@pytest.mark.parametrize("way", MIXED)
def test_where_tokens_are_drawn_greedy_requests_still_get_those_of_plain_decoding(
    target: TargetModel, own: dict[str, Load], mixed: Outputs, way: str, name: str
) -> None:
    judge = MIXED[way].get("adaptive")
    drafter = DRAFTERS[name](own["itself in few bits"](), "probabilistic", judge)
    outputs, steps = answer_mixed(target, drafter, 6, **MIXED[way])
    assert_some_accepted(steps)
    certain = [each for place, (each, *_) in enumerate(REQUESTS[:200]) if asked(place).greedy]
    assert len(certain) == 100
    assert {each: outputs[each] for each in certain} == {each: mixed[each] for each in certain}
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
    options = WAYS[way]()
    drafter = (
        ParallelModelDrafter(own, method)
        if way == FILLING_MASKS
        else ModelDrafter(own, method, judge=options.get("adaptive"))
    )
    engine, _ = engine_of(TableModel(TARGET), drafter, EMITTED, **options)
    found = []
    for first in range(0, DRAWS, 500):
        sequences = [
            request(
                [0, 0],
                EMITTED + 2,
                str(seed),
                parameters=replace(parameters, seed=seed),
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


RULED = SamplingParameters(
    0.9,
    seed=0,
    min_p=0.25,
    presence_penalty=0.4,
    frequency_penalty=0.3,
    logit_bias={1: 0.5},
    bad_words_token_ids=((2, 3), (0,)),
)
"""Everything whose effect on a token depends on those before it, or on how likely others are."""


def ruled_law(asked: SamplingParameters) -> NDArray[np.float64]:
    """The exact probability of each triple after the prompt [0, 0], [V**3], written out."""
    chances = []
    for triple in product(range(LETTERS), repeat=EMITTED):
        chance, text = 1.0, [0, 0]
        for token in triple:
            logits, output = TARGET[text[-2], text[-1]].double().numpy().copy(), text[2:]
            for bad in asked.bad_words_token_ids:
                if output[len(output) - len(bad) + 1 :] == [*bad[:-1]]:
                    logits[bad[-1]] = -np.inf
            for biased, bias in (asked.logit_bias or {}).items():
                logits[biased] += bias
            for seen in output:
                logits[seen] -= asked.frequency_penalty
            for seen in set(output):
                logits[seen] -= asked.presence_penalty
            p = np.exp(logits / asked.temperature)
            p[p < asked.min_p * p.max()] = 0
            chance *= p[token] / p.sum()
            text.append(token)
        chances.append(chance)
    return np.array(chances)


@pytest.mark.parametrize("way", WAYS)
def test_also_where_penalties_bias_bad_words_and_min_p_shape_what_the_target_says(
    way: str,
) -> None:
    found = triples("probabilistic", RULED, way) @ LETTERS ** np.arange(EMITTED)[::-1]
    counts = np.bincount(found, minlength=LETTERS**EMITTED)
    expected = ruled_law(RULED)
    assert p_value(counts, expected) > bonferroni(len(WAYS))
    for other in (
        replace(RULED, min_p=0.0),
        replace(RULED, presence_penalty=0.0),
        replace(RULED, frequency_penalty=0.0),
        replace(RULED, logit_bias=None),
        replace(RULED, bad_words_token_ids=((0,),)),
    ):
        assert p_value(counts, ruled_law(other)) < NEVER
