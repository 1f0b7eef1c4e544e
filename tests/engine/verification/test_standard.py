import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.engine.verification.toys import DRAWS, p_value, samplings

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.verification.standard import StandardVerifier

GREEDY = Sampling.seeded(SamplingParameters())
VERIFIER = StandardVerifier()


def samplers(count: int, temperature: float = 1.0, first_seed: int = 0) -> list[Sampling]:
    """One sampling with its own generator per sequence."""
    return [
        Sampling.seeded(SamplingParameters(temperature, seed))
        for seed in range(first_seed, first_seed + count)
    ]


def draft_of(*rows: list[int], probabilities: torch.Tensor | None = None) -> Draft:
    """A draft of the given tokens, padded to the longest."""
    width = max(map(len, rows))
    tokens = [row + [-1] * (width - len(row)) for row in rows]
    lengths = np.array([len(row) for row in rows])
    return Draft(np.array(tokens, np.int32).reshape(len(rows), width), lengths, probabilities)


def peaks(*tokens: int, vocabulary: int = 6) -> torch.Tensor:
    """Logits whose argmax is the given token in each row."""
    return torch.nn.functional.one_hot(torch.tensor(tokens), vocabulary).float()


def emitted(logits: torch.Tensor, draft: Draft, sampling: list[Sampling]) -> list[list[int]]:
    verdict = VERIFIER.verify(logits, draft, sampling)
    assert [len(tokens) - 1 for tokens in verdict.emitted] == verdict.accepted.tolist()
    assert all(tokens.dtype == np.int32 for tokens in verdict.emitted)
    return [[int(token) for token in tokens] for tokens in verdict.emitted]


# Temperature 0, by hand.


@pytest.mark.parametrize(
    ("drafted", "expected"),
    [
        ([1, 2, 3], [1, 2, 3, 4]),
        ([1, 2, 5], [1, 2, 3]),
        ([1, 5, 3], [1, 2]),
        ([5, 2, 3], [1]),
        ([1, -1, 3], [1, 2]),
    ],
)
def test_greedy_accepts_up_to_the_first_difference_from_the_argmax(
    drafted: list[int], expected: list[int]
) -> None:
    assert emitted(peaks(1, 2, 3, 4), draft_of(drafted), [GREEDY]) == [expected]


def test_an_empty_draft_is_plain_decoding() -> None:
    assert emitted(peaks(3), Draft.empty(1, 0), [GREEDY]) == [[3]]
    assert emitted(peaks(3), Draft.empty(1, 8), [GREEDY]) == [[3]]


def test_a_tie_goes_to_the_first_token_whether_it_was_drafted_or_not() -> None:
    logits = torch.tensor([[0.0, 7.0, 7.0], [7.0, 0.0, 7.0]])
    assert emitted(logits, draft_of([1]), [GREEDY]) == [[1, 0]]
    assert emitted(logits, draft_of([2]), [GREEDY]) == [[1]]
    assert emitted(logits[:1], Draft.empty(1, 1), [GREEDY]) == [[1]]


def test_each_sequence_of_a_ragged_batch_is_judged_by_its_own_rows() -> None:
    logits = peaks(1, 2, 0, 5, 3, 3, 3)
    draft = draft_of([1, 2], [], [3, 4])
    assert emitted(logits, draft, [GREEDY] * 3) == [[1, 2, 0], [5], [3, 3]]


# Above temperature 0, by certainty: all but one token have probability 0.


def test_random_rows_accept_what_is_certain_and_replace_what_is_impossible() -> None:
    logits = peaks(1, 2, 3, 4) * 1e4
    batch = draft_of([1, 2, 3], [1, 2, 0], [1, -1, 3], [])
    rows = torch.cat([logits, logits, logits, logits[:1]])
    assert emitted(rows, batch, samplers(4)) == [[1, 2, 3, 4], [1, 2, 3], [1, 2], [1]]


def test_greedy_and_random_sequences_share_a_batch() -> None:
    certain = peaks(1, 2) * 1e4
    nearly_even = peaks(1, 2) * 1e-3
    rows = torch.cat([certain, nearly_even, certain[:1], nearly_even])
    draft = draft_of([1], [1], [], [3])
    sampling = [*samplers(1), GREEDY, *samplers(1), GREEDY]
    assert emitted(rows, draft, sampling) == [[1, 2], [1, 2], [1], [1]]


@pytest.mark.parametrize("length", [0, 1, 4])
@pytest.mark.parametrize("drafted", [2, 3])
def test_a_step_uses_one_number_for_each_token_that_it_emits(length: int, drafted: int) -> None:
    (sampling,) = samplers(1)
    (reference,) = samplers(1)
    logits = peaks(*[2] * (length + 1)) * 1e4
    verdict = VERIFIER.verify(logits, draft_of([drafted] * length), [sampling])
    reference.uniforms(len(verdict.emitted[0]))
    assert sampling.uniforms(1) == reference.uniforms(1)


@pytest.mark.parametrize("seed", range(40))
def test_a_seed_gives_the_same_tokens_with_and_without_a_draft(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(5, 6, generator=generator)
    parameters = SamplingParameters(0.8, seed)
    plain = Sampling.seeded(parameters)
    expected = [emitted(row.unsqueeze(0), Draft.empty(1, 0), [plain])[0][0] for row in logits]
    drafted = torch.randint(0, 6, (4,), generator=generator).tolist()
    for right in range(5):
        tokens = expected[:right] + drafted[right:]
        run = emitted(logits, draft_of(tokens), [Sampling.seeded(parameters)])[0]
        assert run == expected[: len(run)]
        assert len(run) > right


def test_a_greedy_step_draws_nothing() -> None:
    (reference,) = samplers(1)
    sampling = Sampling.seeded(SamplingParameters())
    VERIFIER.verify(peaks(1, 2), draft_of([1]), [sampling])
    assert sampling.uniforms(1) == reference.uniforms(1)


def test_a_sequences_tokens_do_not_depend_on_its_neighbours() -> None:
    logits = torch.randn(6, 6, generator=torch.Generator().manual_seed(1))
    together = emitted(logits, draft_of([1, 2], [3, 4]), samplers(2))
    alone = emitted(logits[3:], draft_of([3, 4]), samplers(1, first_seed=1))
    assert together[1:] == alone


# Above temperature 0, in distribution; `test_losslessness.py` has more of it.


def softmax(logits: torch.Tensor) -> NDArray[np.float64]:
    weights = np.exp(logits.double().numpy())
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def first_tokens(logits: list[float], draft: Draft) -> NDArray[np.int64]:
    """How often each token comes first in DRAWS steps with one drafted token each."""
    rows = torch.tensor(logits).expand(2 * DRAWS, -1)
    verdict = VERIFIER.verify(rows, draft, samplings(SamplingParameters(1.0, seed=0), DRAWS))
    return np.bincount([tokens[0] for tokens in verdict.emitted], minlength=len(logits))


FALLING = [2.0, 1.5, 1.0, 0.5]
"""Softmax .455 .276 .167 .102; the drafter's argmax is token 0."""


def test_an_argmax_draft_judged_as_a_point_mass_leaves_the_target_distribution() -> None:
    counts = first_tokens(FALLING, draft_of(*[[0]] * DRAWS))
    assert p_value(counts, softmax(torch.tensor(FALLING))) > 1e-3


def test_an_argmax_draft_judged_as_if_drawn_from_a_softmax_does_not() -> None:
    q = torch.tensor(FALLING).softmax(0).expand(DRAWS, 1, -1)
    counts = first_tokens(FALLING, draft_of(*[[0]] * DRAWS, probabilities=q))
    assert p_value(counts, softmax(torch.tensor(FALLING))) < 1e-6


def test_a_draft_drawn_from_q_leaves_the_target_distribution() -> None:
    q = np.array([0.1, 0.2, 0.3, 0.4])
    drawn = np.random.default_rng(5).choice(4, size=(DRAWS, 1), p=q)
    probabilities = torch.tensor(q, dtype=torch.float32).expand(DRAWS, 1, -1)
    counts = first_tokens(FALLING, draft_of(*drawn.tolist(), probabilities=probabilities))
    assert p_value(counts, softmax(torch.tensor(FALLING))) > 1e-3
