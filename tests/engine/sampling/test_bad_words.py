import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import NoBadWordsLogitsProcessor

from outrider.engine.sampling.bad_words import BadWords, tokenize_bad_words
from outrider.engine.sampling.history import History

TOKEN = st.integers(0, 3)
TOKENS = st.lists(TOKEN, max_size=6)


def forbidden(
    runs: list[list[int]], output: list[int], drafted: list[int], prompt: tuple[int, ...] = (1,)
) -> list[list[int]]:
    """The tokens that each row forbids."""
    rows = torch.zeros(len(drafted) + 1, 4)
    arrays = (np.array(each, np.int32) for each in (prompt, output, drafted))
    BadWords(runs).apply(rows, History(*arrays))
    return [(row == -math.inf).nonzero().flatten().tolist() for row in rows]


def test_the_last_token_is_forbidden_only_after_the_ones_before_it() -> None:
    assert forbidden([[2, 3]], [1, 2], []) == [[3]]
    assert forbidden([[2, 3]], [2, 1], []) == [[]]
    assert forbidden([[3]], [], []) == [[3]]


def test_drafted_tokens_come_before_later_rows() -> None:
    assert forbidden([[1, 2, 3], [0]], [1], [2, 0]) == [[0], [0, 3], [0]]


def test_the_prompt_is_no_part_of_a_bad_word() -> None:
    assert forbidden([[2, 3]], [], [], prompt=(2,)) == [[]]


@given(
    runs=st.lists(st.lists(TOKEN, min_size=1, max_size=4), min_size=1, max_size=6),
    output=st.lists(TOKEN, min_size=1, max_size=6),
    drafted=TOKENS,
)
def test_the_same_tokens_are_forbidden_as_by_transformers(
    runs: list[list[int]], output: list[int], drafted: list[int]
) -> None:
    for i, tokens in enumerate(forbidden(runs, output, drafted)):
        past = torch.tensor([output + drafted[:i]])
        scores = NoBadWordsLogitsProcessor(runs)(past, torch.zeros(1, 4))
        assert tokens == (scores[0] == -math.inf).nonzero().flatten().tolist()


def test_a_word_counts_at_the_beginning_and_after_a_space() -> None:
    def encode(text: str) -> list[int]:
        return {"sun": [5], " sun": [6], "moon": [7, 8], " moon": [9]}[text]

    assert tokenize_bad_words(["sun", " moon"], encode) == ((5,), (6,), (7, 8))
