import math

import numpy as np
import torch
from transformers import MinNewTokensLengthLogitsProcessor

from outrider.engine.sampling.history import History
from outrider.engine.sampling.masks import AllowedTokens, LogitBias, MinTokens

X = -math.inf


def history(output: list[int], drafted: list[int]) -> History:
    prompt, outputs, drafts = (np.array(each, np.int32) for each in ([1], output, drafted))
    return History(prompt, outputs, drafts)


def test_only_allowed_tokens_remain_possible() -> None:
    rows = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    AllowedTokens([2, 0, 2]).apply(rows, history([], [0]))
    assert rows.tolist() == [[1, X, 3], [4, X, 6]]


def test_biases_are_added_to_their_tokens_in_every_row() -> None:
    rows = torch.zeros(2, 3)
    LogitBias({2: -1.5, 0: 100}).apply(rows, history([], [0]))
    assert rows.tolist() == [[100, 0, -1.5], [100, 0, -1.5]]


def test_end_tokens_are_impossible_until_enough_tokens_drafted_ones_counted() -> None:
    rows = torch.zeros(4, 3)
    MinTokens(3, [2]).apply(rows, history([0], [0, 0, 0]))
    assert rows.tolist() == [[0, 0, X], [0, 0, X], [0, 0, 0], [0, 0, 0]]


def test_end_tokens_come_back_when_transformers_lets_them() -> None:
    oracle = MinNewTokensLengthLogitsProcessor(1, 3, [2, 1], device="cpu")
    for length in range(5):
        rows, output = torch.zeros(1, 4), [0] * length
        MinTokens(3, [1, 2]).apply(rows, history(output, []))
        assert torch.equal(rows, oracle(torch.tensor([[1, *output]]), torch.zeros(1, 4)))
