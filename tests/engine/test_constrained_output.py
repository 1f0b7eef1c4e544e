"""Constrained output under speculation: valid, and token for token that of plain decoding."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.engine.constraints.letters import (
    END,
    SIZE,
    WORDS,
    LetterModel,
    logits_after,
    text_of,
)
from tests.engine.constraints.running import K, constrained, run
from tests.engine.constraints.wishes import WISHES, Judge
from tests.engine.loops import ScriptedDrafter, engine_of

from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.verification import AdaptiveVerification
from outrider.engine.constraints.spec import ConstraintSpec
from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.batch_size_ranges import BatchSizeRanges
from outrider.engine.drafting.draft import Draft
from outrider.engine.drafting.draft_model import ModelDrafter
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.drafting.parallel_draft_model import ParallelModelDrafter
from outrider.engine.drafting.registry import DRAFTERS, build_drafter
from outrider.engine.drafting.sampling import draft_tokens
from outrider.engine.drafting.shared_vocabulary import SharedVocabulary
from outrider.engine.sampling import SamplingParameters
from outrider.engine.scheduling.limits import Limits
from outrider.engine.sequence import Sequence
from outrider.engine.verification.base import Verdict, Verifier
from outrider.engine.verification.block import BlockVerifier
from outrider.engine.verification.fly import FlyVerifier
from outrider.engine.verification.standard import StandardVerifier
from outrider.engine.verification.synthetic import SyntheticVerifier
from outrider.records.arm import Arm
from outrider.records.request import FinishReason, StepRecord

ASKED = {
    "greedy": SamplingParameters(),
    "cool": SamplingParameters(0.6),
    "warm": SamplingParameters(1.0),
    "penalties": SamplingParameters(1.0, repetition_penalty=1.3, frequency_penalty=0.4),
    "bias, top-k and top-p": SamplingParameters(
        1.2, logit_bias={WORDS.index("a"): 4.0, END: -2.0}, top_k=20, top_p=0.9
    ),
    "late end": SamplingParameters(0.9, min_tokens=4),
    "no end": SamplingParameters(1.0, ignore_eos=True),
    "bad words": SamplingParameters(0.8, bad_words_token_ids=((3, 4), (5,), (0, 0))),
    "logprobs": SamplingParameters(0.7, logprobs=2),
}


def requests() -> Iterator[tuple[str, ConstraintSpec | None, SamplingParameters, list[int]]]:
    """324 of every kind, and some between them that want no constraint."""
    for seed in range(4):
        for place, (wish, (spec, _)) in enumerate(WISHES.items()):
            for asked, parameters in ASKED.items():
                # As long as three blocks, in part the same for many.
                prompt = [*range(20)] * 4 + [place, seed] * 4
                yield f"{wish}/{asked}/{seed}", spec, replace(parameters, seed=seed), prompt
            yield f"free/{place}/{seed}", None, SamplingParameters(1.0, seed), [place, seed]


@dataclass
class Answers:
    """What became of all requests."""

    outputs: dict[str, list[int]]
    reasons: dict[str, FinishReason | None]
    steps: dict[str, tuple[StepRecord, ...]]

    @property
    def invalidated(self) -> int:
        return sum(step.invalidated for each in self.steps.values() for step in each)


def answer(drafter: Drafter, k: int = K, **options: Any) -> Answers:
    blocks = options.pop("num_blocks", 300)
    engine, recorder = engine_of(LetterModel(blocks), drafter, k, limits=Limits(24, 600), **options)
    sequences = [
        constrained(name, spec, parameters, prompt=prompt)
        for name, spec, parameters, prompt in requests()
    ]
    updates = run(engine, *sequences)
    return Answers(
        {each.request_id: each.output_token_ids.tolist() for each in sequences},
        {name: told[-1].finish_reason for name, told in updates.items()},
        {each.request_id: tuple(recorder.take(each).steps) for each in sequences},
    )


def judge_of(name: str) -> Judge | None:
    wish = name.partition("/")[0]
    return WISHES[wish][1] if wish in WISHES else None


def violations(answers: Answers) -> list[str]:
    """The finished outputs that their judge does not accept, or cannot even read."""
    found = []
    for name, output in answers.outputs.items():
        judge = judge_of(name)
        if judge is None or answers.reasons[name] is not FinishReason.STOP:
            continue
        try:
            valid = judge(text_of(output))
        except ValueError:
            valid = False
        if not valid:
            found.append(f"{name}: {text_of(output)}")
    return found


@pytest.fixture(scope="module")
def plain() -> Answers:
    return answer(NoDrafter(), 0)


def assert_same(answers: Answers, plain: Answers) -> None:
    assert answers.outputs == plain.outputs
    assert answers.reasons == plain.reasons
    for name, steps in answers.steps.items():
        assert sum(step.emitted for step in steps) == len(answers.outputs[name]) - 1
        for step in steps:
            assert 0 <= step.accepted <= step.drafted
            assert step.drafted + step.trimmed + step.invalidated <= K
            assert not step.invalidated or judge_of(name) is not None


def test_plain_answers_are_valid_and_most_of_them_end(plain: Answers) -> None:
    asked = [name for name in plain.outputs if judge_of(name) is not None]
    ended = [name for name in asked if plain.reasons[name] is FinishReason.STOP]
    assert len(asked) == 324
    assert len(ended) > 250
    assert {judge_of(name) for name in ended} == {judge for _, judge in WISHES.values()}
    assert violations(plain) == []
    assert FinishReason.ERROR not in plain.reasons.values()


def test_free_requests_answer_as_they_do_without_constrained_ones_beside_them(
    plain: Answers,
) -> None:
    engine, _ = engine_of(LetterModel(), NoDrafter(), 0)
    free = [
        constrained(name, spec, asked, prompt=prompt)
        for name, spec, asked, prompt in requests()
        if spec is None
    ]
    run(engine, *free)
    for sequence in free:
        assert sequence.output_token_ids.tolist() == plain.outputs[sequence.request_id]


def partly_right(plain: Answers) -> Drafter:
    random = np.random.default_rng(4)

    def draft(sequence: Sequence) -> list[int]:
        right = plain.outputs[sequence.request_id][len(sequence.output_token_ids) :][:K]
        return [t if random.random() < 0.7 else int(random.integers(SIZE)) for t in right]

    return ScriptedDrafter(draft)


def any_tokens(_: Answers) -> Drafter:
    random = np.random.default_rng(5)
    return ScriptedDrafter(lambda _: random.integers(0, SIZE, K).tolist())


def arm_of(method: str) -> Arm:
    return Arm(method, method, K, prompt_lookup_min=1, prompt_lookup_max=3)


def built(method: str, _: Answers) -> Drafter:
    return build_drafter(arm_of(method))


def turned_around() -> SharedVocabulary:
    """A draft model's ids of the target's tokens from the last on; it does not have the first."""
    shared = np.arange(SIZE - 4)
    to_draft = np.where(np.arange(SIZE) < 4, 0, SIZE - 1 - np.arange(SIZE))
    return SharedVocabulary(to_draft, torch.from_numpy(shared), SIZE - 1 - shared, len(shared))


def own_model(**options: Any) -> OwnModel:
    return OwnModel(LetterModel(), max_rows=600, **options)


MADE: dict[str, Callable[[Answers], Drafter]] = {
    **{name: partial(built, name) for name in DRAFTERS},
    "draft model": lambda _: ModelDrafter(own_model()),
    "draft model in one pass": lambda _: ParallelModelDrafter(own_model(mask_token_id=0)),
    "draft model of another vocabulary": lambda _: ModelDrafter(
        own_model(vocabulary=turned_around())
    ),
    "partly right": partly_right,
    "any tokens": any_tokens,
}


@pytest.mark.parametrize("verifier", [StandardVerifier(), BlockVerifier()], ids=lambda v: v.name)
@pytest.mark.parametrize("drafter", MADE)
def test_with_any_drafter_every_answer_is_that_of_plain_decoding_seed_by_seed(
    drafter: str, verifier: Verifier, plain: Answers
) -> None:
    answers = answer(MADE[drafter](plain), verifier=verifier)
    assert_same(answers, plain)
    assert (answers.invalidated > 0) == (drafter != "none")


def test_what_a_drafter_of_any_tokens_proposes_is_mostly_invalidated(plain: Answers) -> None:
    steps = [
        step
        for name, each in answer(any_tokens(plain)).steps.items()
        if judge_of(name) is not None
        for step in each
    ]
    drafted, invalidated = (sum(getattr(s, f) for s in steps) for f in ("drafted", "invalidated"))
    assert invalidated > 4 * drafted
    # What the grammar leaves is judged; the drafter still mostly guesses wrong.
    assert sum(step.accepted for step in steps) < drafted


CHEAP, DEAR = CostCurve.of({1: 1.0, 200: 2.0}), CostCurve.of({1: 1.0, 2: 1.9, 200: 180.0})
WAYS: dict[str, dict[str, Any]] = {
    "adaptive, rows cheap": {"adaptive": lambda: AdaptiveVerification(CHEAP, K)},
    "adaptive, rows dear": {"adaptive": lambda: AdaptiveVerification(DEAR, K)},
    "too little cache": {"num_blocks": 12},
    "too little cache, shared": {"num_blocks": 12, "prefix_caching": True},
    "K by batch size": {
        "k_by_batch_size": BatchSizeRanges([[1, 9, K], [10, 24, 2]], num_speculative_tokens=K)
    },
}


@pytest.mark.parametrize("way", WAYS)
def test_so_it_is_in_every_way_to_serve_them(way: str, plain: Answers) -> None:
    options = dict(WAYS[way])
    if "adaptive" in options:
        options["adaptive"] = options["adaptive"]()
    answers = answer(partly_right(plain), **options)
    assert_same(answers, plain)
    assert answers.invalidated > 0
    assert ("adaptive" in way) == any(s.trimmed for each in answers.steps.values() for s in each)


class DrawingDrafter:
    """Draws from a target warmed up, and says from what."""

    name: ClassVar[str] = "drawing"

    def propose(self, batch: list[Sequence], limit: NDArray[np.int64]) -> Draft:
        draft = Draft.empty(len(batch), int(limit.max()))
        q = torch.full((*draft.tokens.shape, SIZE), 1 / SIZE)
        for row, (sequence, most) in enumerate(zip(batch, limit.tolist(), strict=True)):
            history = sequence.token_ids[-2:].tolist()
            for i in range(most):
                logits = logits_after(tuple(history[-2:])).unsqueeze(0) / 2
                drawn = draft_tokens(logits, [sequence.sampling], "probabilistic")
                draft.tokens[row, i] = token = int(drawn.tokens[0])
                if drawn.q is not None:
                    q[row, i] = drawn.q[0]
                else:
                    q[row, i] = torch.nn.functional.one_hot(drawn.tokens[0], SIZE)
                history.append(token)
            draft.lengths[row] = most
        return Draft(draft.tokens, draft.lengths, q)

    def observe(self, batch: list[Sequence], verdict: Verdict) -> None:
        """Learn nothing."""


@pytest.mark.parametrize(
    "verifier",
    [
        StandardVerifier(),
        BlockVerifier(),
        FlyVerifier(window=1, entropy_threshold=0.1),
        SyntheticVerifier((0.9, 0.8, 0.7, 0.6, 0.5)),
    ],
    ids=lambda verifier: verifier.name,
)
def test_answers_are_valid_under_every_rule_with_drafts_drawn_from_a_q(
    verifier: Verifier, plain: Answers
) -> None:
    answers = answer(DrawingDrafter(), verifier=verifier)
    assert violations(answers) == []
    assert FinishReason.ERROR not in answers.reasons.values()
    assert sum(reason is FinishReason.STOP for reason in answers.reasons.values()) > 250
    assert sum(s.accepted for each in answers.steps.values() for s in each) > 50
    if verifier.lossless:
        greedy = [name for name in plain.outputs if "/greedy/" in name]
        assert {name: answers.outputs[name] for name in greedy} == {
            name: plain.outputs[name] for name in greedy
        }
