from dataclasses import replace

import numpy as np
import pytest
import torch

from outrider.engine.drafting.checking import check
from outrider.engine.drafting.draft import Draft

VOCABULARY = 5
LIMIT = np.array([2, 2, 1])
TOKENS = np.array([[1, 4], [-1, -1], [0, -1]], np.int32)
LENGTHS = np.array([2, 0, 1])
EVEN = torch.full((3, 2, VOCABULARY), 1 / VOCABULARY)
GOOD = Draft(TOKENS, LENGTHS, EVEN)


def reasons(draft: Draft) -> dict[int, str]:
    return dict(check(draft, LIMIT, VOCABULARY))


def with_q(row: int, position: int, q: list[float]) -> Draft:
    probabilities = EVEN.clone()
    probabilities[row, position] = torch.tensor(q)
    return replace(GOOD, probabilities=probabilities)


def with_token(row: int, position: int, token: int) -> Draft:
    tokens = TOKENS.copy()
    tokens[row, position] = token
    return replace(GOOD, tokens=tokens)


@pytest.mark.parametrize("draft", [GOOD, Draft(TOKENS, LENGTHS), Draft.empty(3, 0)])
def test_a_sound_draft_has_no_reasons(draft: Draft) -> None:
    assert check(draft, LIMIT, VOCABULARY) == []


@pytest.mark.parametrize("token", [-1, -7, VOCABULARY, 2**31 - 1])
def test_an_id_outside_the_vocabulary_is_named(token: int) -> None:
    assert reasons(with_token(0, 1, token)) == {
        0: f"the drafter proposed token id {token} to a target with ids 0 to 4"
    }


def test_what_stands_past_the_length_does_not_count() -> None:
    assert reasons(with_token(2, 1, 99)) == {}
    assert reasons(with_q(2, 1, [float("nan")] * VOCABULARY)) == {}
    assert reasons(with_q(1, 0, [-1.0] * VOCABULARY)) == {}


def test_more_tokens_than_the_limit_or_the_table_are_too_many() -> None:
    assert (
        "proposed 2 tokens where 0 to 1 fit"
        in reasons(replace(GOOD, lengths=np.array([2, 0, 2]), tokens=np.zeros((3, 2), np.int32)))[2]
    )
    assert (
        "proposed 3 tokens where 0 to 2 fit"
        in reasons(replace(GOOD, lengths=np.array([3, 0, 1])))[0]
    )
    assert "proposed -1 tokens" in reasons(replace(GOOD, lengths=np.array([2, -1, 1])))[1]


@pytest.mark.parametrize(
    ("q", "reason"),
    [
        ([float("nan"), 0.25, 0.25, 0.25, 0.25], "probability of nan"),
        ([-0.2, 0.3, 0.3, 0.3, 0.3], "probability of -0.2"),
        ([float("inf"), 0.0, 0.0, 0.0, 1.0], "sum to inf instead of 1"),
        ([0.0, 0.0, 0.0, 0.0, 0.0], "sum to 0 instead of 1"),
        ([0.2, 0.2, 0.2, 0.2, 0.3], "sum to 1.1 instead of 1"),
        ([1.0, 0.0, 0.0, 0.0, 0.0], "probability 0 in what it was drawn from"),
    ],
)
def test_a_q_that_is_no_distribution_or_excludes_its_token_is_named(
    q: list[float], reason: str
) -> None:
    (row, seen), *others = check(with_q(0, 1, q), LIMIT, VOCABULARY)
    assert row == 0
    assert reason in seen
    assert not others


def test_rounding_in_q_is_none_of_its_faults() -> None:
    q = torch.randn(3, 2, 50_000, generator=torch.Generator().manual_seed(0)).softmax(-1)
    assert check(replace(GOOD, probabilities=q), LIMIT, 50_000) == []


def test_each_bad_request_has_one_reason_and_the_good_ones_none() -> None:
    bad = replace(with_q(2, 0, [0.0] * VOCABULARY), tokens=with_token(0, 0, 77).tokens)
    found = check(bad, LIMIT, VOCABULARY)
    assert [row for row, _ in found] == [0, 2]
    keep = np.array([False, True, False])
    assert check(bad.select(keep), LIMIT[keep], VOCABULARY) == []


@pytest.mark.parametrize(
    "draft",
    [
        replace(GOOD, lengths=LENGTHS[:2]),
        replace(GOOD, tokens=TOKENS[:2]),
        replace(GOOD, tokens=TOKENS[0]),
        replace(GOOD, probabilities=EVEN[:, :1]),
        replace(GOOD, probabilities=EVEN[..., :4]),
        replace(GOOD, log_odds=np.zeros((3, 1))),
        replace(GOOD, matched_tokens=np.zeros(2, np.int64)),
    ],
)
def test_a_draft_of_the_wrong_shape_fails_every_request(draft: Draft) -> None:
    found = reasons(draft)
    assert found.keys() == {0, 1, 2}
    assert all(reason.startswith("the drafter returned") for reason in found.values())
