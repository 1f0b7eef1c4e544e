from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from outrider.engine.caching.naming import further_names
from outrider.engine.models.base import BLOCK_TOKENS


def tokens(count: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 50_000, count).astype(np.int32)


def names(token_ids: Any, lookahead_tokens: int = 0) -> list[bytes]:
    return further_names(token_ids, [], lookahead_tokens=lookahead_tokens)


def test_only_full_blocks_have_names() -> None:
    assert names(tokens(BLOCK_TOKENS - 1)) == []
    assert len(names(tokens(3 * BLOCK_TOKENS))) == 3
    assert len(names(tokens(4 * BLOCK_TOKENS - 1))) == 3


def test_equal_beginnings_have_equal_names() -> None:
    one, other = tokens(4 * BLOCK_TOKENS), tokens(4 * BLOCK_TOKENS)
    other[2 * BLOCK_TOKENS + 5] += 1
    assert names(one)[:2] == names(other)[:2]
    assert not set(names(one)[2:]) & set(names(other)[2:])


def test_the_same_block_after_another_beginning_has_another_name() -> None:
    one = tokens(2 * BLOCK_TOKENS)
    other = one.copy()
    other[0] += 1
    assert names(one)[1] != names(other)[1]


def test_blocks_of_equal_tokens_differ_by_place() -> None:
    same = np.full(3 * BLOCK_TOKENS, 7, np.int32)
    assert len(set(names(same))) == 3


def test_tokens_that_a_drafter_looks_ahead_to_are_part_of_a_name() -> None:
    one = tokens(2 * BLOCK_TOKENS + 1)
    other = one.copy()
    other[BLOCK_TOKENS] += 1
    assert names(one)[0] == names(other)[0]
    assert names(one, 1)[0] != names(other, 1)[0]


def test_a_block_has_no_name_before_the_tokens_after_it_are_known() -> None:
    assert len(names(tokens(BLOCK_TOKENS + 2), 3)) == 0
    assert len(names(tokens(BLOCK_TOKENS + 3), 3)) == 1


@given(count=st.integers(0, 300), cut=st.integers(0, 300), lookahead=st.integers(0, 4))
def test_names_found_in_two_goes_are_those_found_in_one(
    count: int, cut: int, lookahead: int
) -> None:
    whole = tokens(count)
    early = further_names(whole[:cut], [], lookahead_tokens=lookahead)
    late = further_names(whole, early, lookahead_tokens=lookahead)
    assert early + late == names(whole, lookahead)
