from itertools import product

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.engine.verification.toys import (
    DRAWS,
    TARGET,
    VOCABULARY,
    TableDrafter,
    samplings,
    table,
    target_rows,
)

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import SamplingParameters
from outrider.engine.verification.block import BlockVerifier, prefix_acceptance, prefix_weights
from outrider.engine.verification.random_rows import RandomRows
from outrider.engine.verification.rejection import residual
from outrider.engine.verification.standard import StandardVerifier

PLAIN = SamplingParameters(1.0, seed=0)
LONG = 3
PATHS = list(product(range(VOCABULARY), repeat=LONG))
P = TARGET.double().softmax(-1).numpy()

Table = NDArray[np.float64]


def softmax(logits: torch.Tensor) -> Table:
    return np.asarray(logits.double().softmax(-1).numpy())


def along(law: Table, path: tuple[int, ...]) -> list[Table]:
    """The law of each next token along a path that begins after tokens 0 and 0."""
    text = (0, 0, *path)
    return [law[text[i], text[i + 1]] for i in range(len(path) + 1)]


def chance(law: Table, path: tuple[int, ...]) -> float:
    laws = along(law, path)
    return float(np.prod([laws[i][token] for i, token in enumerate(path)]))


def every_path(q: torch.Tensor | None) -> RandomRows:
    """All drafts of three tokens at once, against the target."""
    tokens = np.array(PATHS, np.int32)
    context = np.zeros((len(PATHS), 2), np.int64)
    probabilities = None
    if q is not None:
        text = np.concatenate([context, tokens], axis=1)
        probabilities = q[text[:, :LONG], text[:, 1 : LONG + 1]].softmax(-1)
    draft = Draft(tokens, np.full(len(PATHS), LONG), probabilities)
    return RandomRows.of(target_rows(context, draft), draft, samplings(PLAIN, len(PATHS)))


def shares(rows: RandomRows) -> Table:
    """For each path, the chance that just 0, 1, 2, 3 of its tokens are accepted, [paths, 4]."""
    h = prefix_acceptance(rows, prefix_weights(rows)).reshape(-1, LONG + 1).numpy().copy()
    h[:, 0] = 1
    longer_fail = np.cumprod(1 - h[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(h * np.concatenate([longer_fail[:, 1:], np.ones((len(h), 1))], axis=1))


def expected_by_the_paper(q: Table, path: tuple[int, ...]) -> float:
    """The mean accepted length of one draft, the paper's algorithm 2 in plain numbers."""
    targets, drafts = along(P, path), along(q, path)
    weight, mean, still = 1.0, 0.0, []
    for i, token in enumerate(path, start=1):
        weight = min(1.0, weight * targets[i - 1][token] / drafts[i - 1][token])
        rest = sum(max(weight * a - b, 0.0) for a, b in zip(targets[i], drafts[i], strict=True))
        still.append(weight if i == len(path) else rest / (rest + 1 - weight))
    for length in range(len(path), 0, -1):
        mean += length * still[length - 1] * float(np.prod([1 - h for h in still[length:]]))
    return mean


def expected_token_by_token(q: Table, path: tuple[int, ...]) -> float:
    targets, drafts = along(P, path), along(q, path)
    ratios = [min(1.0, targets[i][t] / drafts[i][t]) for i, t in enumerate(path)]
    return float(np.cumprod(ratios).sum())


@pytest.mark.parametrize("seed", range(4))
def test_the_mean_accepted_length_is_that_of_the_paper(seed: int) -> None:
    q = table(seed)
    lengths = shares(every_path(q)) @ np.arange(LONG + 1)
    np.testing.assert_allclose(
        lengths, [expected_by_the_paper(softmax(q), path) for path in PATHS], atol=1e-5
    )


@pytest.mark.parametrize("seed", range(4))
def test_more_is_accepted_than_token_by_token(seed: int) -> None:
    q = softmax(table(seed))
    weights = [chance(q, path) for path in PATHS]
    block = np.dot(weights, [expected_by_the_paper(q, path) for path in PATHS])
    standard = np.dot(weights, [expected_token_by_token(q, path) for path in PATHS])
    assert block > standard + 0.01


def test_point_masses_are_accepted_as_often_as_token_by_token() -> None:
    lengths = shares(every_path(None)) @ np.arange(LONG + 1)
    products = [np.cumprod([along(P, path)[i][t] for i, t in enumerate(path)]) for path in PATHS]
    np.testing.assert_allclose(lengths, np.sum(products, axis=1), atol=1e-5)


@pytest.mark.parametrize("q", [table(8), TARGET, -4 * TARGET], ids=["other", "same", "disjoint"])
def test_the_exact_law_of_the_emitted_tokens_is_the_targets(q: torch.Tensor) -> None:
    """Sums over every draft, every accepted length and every bonus token, without sampling."""
    rows = every_path(q)
    accepted = shares(rows)
    weights = prefix_weights(rows).unsqueeze(-1).float()
    rest = residual(rows.p * weights, rows.q, rows.drafted).double()
    bonus = (rest / rest.sum(-1, keepdim=True)).reshape(-1, LONG + 1, VOCABULARY).numpy()
    emitted = np.zeros((VOCABULARY,) * (LONG + 1))
    for row, path in enumerate(PATHS):
        for length, token in product(range(LONG + 1), range(VOCABULARY)):
            begun = (*path[:length], token)
            share = chance(softmax(q), path) * accepted[row, length] * bonus[row, length, token]
            # What comes after the step is plain decoding.
            for more in product(range(VOCABULARY), repeat=LONG - length):
                follows = chance(P, begun + more) / chance(P, begun)
                emitted[begun + more] += share * follows
    for tokens in product(range(VOCABULARY), repeat=LONG + 1):
        assert emitted[tokens] == pytest.approx(chance(P, tokens), abs=1e-6)


def mean_accepted(verifier: BlockVerifier | StandardVerifier, q: torch.Tensor) -> float:
    context = np.zeros((DRAWS, 2), np.int64)
    sampling = samplings(PLAIN, DRAWS)
    draft = TableDrafter(q).draft(context, sampling)
    return float(verifier.verify(target_rows(context, draft), draft, sampling).accepted.mean())


def test_what_is_sampled_agrees_with_the_enumeration() -> None:
    q = table(8)
    for verifier, expected in (
        (BlockVerifier(), expected_by_the_paper),
        (StandardVerifier(), expected_token_by_token),
    ):
        mean = sum(chance(softmax(q), path) * expected(softmax(q), path) for path in PATHS)
        error = 4 * (LONG / 2) / np.sqrt(DRAWS)  # a length in [0, 3] has at most this spread
        assert mean_accepted(verifier, q) == pytest.approx(mean, abs=error)


@pytest.mark.parametrize("claimed", [False, True])
def test_with_one_drafted_token_it_is_the_standard_rule(claimed: bool) -> None:
    rng = np.random.default_rng(2)
    count = 500
    tokens = rng.integers(0, VOCABULARY, (count, 1)).astype(np.int32)
    q = table(8)[0, 0].softmax(-1).expand(count, 1, -1) if claimed else None
    draft = Draft(tokens, np.ones(count, np.int64), q)
    rows = target_rows(np.zeros((count, 2), np.int64), draft)
    block, standard = (
        verifier.verify(rows, draft, samplings(PLAIN, count))
        for verifier in (BlockVerifier(), StandardVerifier())
    )
    assert 0 < block.accepted.sum() < count
    assert [run.tolist() for run in block.emitted] == [run.tolist() for run in standard.emitted]


def test_a_token_that_was_taken_back_ends_the_block() -> None:
    tokens = np.array([[1, 2, 3]], np.int32)
    certain = table(8)[[0, 0, 1], [0, 1, 2]].softmax(-1).unsqueeze(0)
    whole = Draft(tokens[:, :2], np.array([2]), certain[:, :2])
    holed = Draft(np.array([[1, 2, -1]], np.int32), np.array([3]), certain)
    context = np.zeros((1, 2), np.int64)
    h_whole, h_holed = (
        prefix_acceptance(rows, prefix_weights(rows))
        for rows in (
            RandomRows.of(target_rows(context, draft), draft, samplings(PLAIN, 1))
            for draft in (whole, holed)
        )
    )
    torch.testing.assert_close(h_holed[:3], h_whole)
    assert h_holed[3] == 0


def test_tokens_of_a_draft_beyond_its_length_are_not_looked_at() -> None:
    cut = Draft(np.array([[1, 2, 3]], np.int32), np.array([1]), None)
    short = Draft(np.array([[1, -1, -1]], np.int32), np.array([1]), None)
    rows = target_rows(np.zeros((1, 2), np.int64), cut)
    for seed in range(20):
        one, other = (
            BlockVerifier().verify(rows, draft, samplings(SamplingParameters(1.0, seed), 1))
            for draft in (cut, short)
        )
        assert one.emitted[0].tolist() == other.emitted[0].tolist()
