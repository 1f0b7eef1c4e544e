from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.kernels.arrays import Floats, random
from torch.nn import functional

from outrider.engine.kernels.arguments import SPAN, Cache
from outrider.engine.kernels.attention.base import CacheFormat, scratch_numbers
from outrider.engine.kernels.attention.registry import CACHE_FORMATS, attend, store_heads
from outrider.engine.kernels.formats.tiles import DEPTH
from outrider.engine.kernels.memory import aligned_zeros

TOKENS = 3 * SPAN
TABLE = (4, 0, 2)
EXACT = {"float32": 1e-5, "bfloat16 in tiles": 1e-4}

each_format = pytest.mark.parametrize("name", CACHE_FORMATS)


def empty(held: CacheFormat, kv_heads: int, size: int) -> Cache:
    """Six blocks; what is no number stands wherever the format may have it."""
    keys = np.empty((6, kv_heads, *held.key_shape(size)), held.stored)
    values = np.zeros((6, kv_heads, *held.value_shape(size)), held.stored)
    if held.stored == np.float32:
        keys[:] = values[:] = np.nan
    else:
        keys[:] = 0 if size % DEPTH else 0x7FC0
    return Cache(keys, values)


def paged(name: str, keys: Floats, values: Floats, table: Sequence[int] = TABLE) -> Cache:
    """Keys and values [G, TOKENS, D] in the blocks of `table`."""
    cache = empty(CACHE_FORMATS[name], keys.shape[0], keys.shape[2])
    for position in range(TOKENS):
        heads = np.vstack([keys[:, position], values[:, position]])
        store_heads(cache, heads, np.array(table), position)
    return cache


def short(*shape: int, **how: Any) -> Floats:
    """Random numbers that bfloat16 holds."""
    rounded: Floats = torch.from_numpy(random(*shape, **how)).bfloat16().float().numpy()
    return rounded


def attention(
    x: Floats,
    cache: Cache,
    positions: Sequence[int],
    *,
    window: int = 0,
    scale: float = 0.125,
    cuts: Sequence[int] = (),
    table: Sequence[int] = TABLE,
) -> Floats:
    """Attention of rows [R, Q, D] at `positions`, in chunks that begin at `cuts`."""
    rows, heads, size = x.shape
    at, blocks = np.array(positions), np.array(table)
    flat = np.hstack([x.reshape(rows, -1), np.full((rows, 5), np.nan, np.float32)])
    out = np.full((rows, heads * size), np.nan, np.float32)
    scratch = aligned_zeros((scratch_numbers(rows * heads, TOKENS, size),), np.float32)
    scratch[:] = np.nan
    factor: Any = np.float32(scale)
    for first, end in zip((0, *cuts), (*cuts, rows), strict=True):
        for g in range(cache.keys.shape[1]):
            attend(cache, first, end, g, size, flat, at, blocks, window, factor, scratch, out)
    return out.reshape(x.shape)


def expected(
    x: Floats, keys: Floats, values: Floats, positions: Sequence[int], window: int, scale: float
) -> Floats:
    at = torch.tensor(positions)[:, None]
    seen = torch.arange(TOKENS)
    visible = (seen <= at) & (seen > at - (window or TOKENS))
    q, k, v = (torch.from_numpy(each).double() for each in (x, keys, values))
    result: Floats = (
        functional.scaled_dot_product_attention(
            q.transpose(0, 1), k, v, attn_mask=visible, scale=scale, enable_gqa=True
        )
        .transpose(0, 1)
        .numpy()
    )
    return result


@each_format
@pytest.mark.parametrize("window", [0, 1, 5, SPAN, 70, TOKENS])
@pytest.mark.parametrize(
    ("kv_heads", "group", "size"), [(1, 1, 64), (2, 3, 64), (1, 7, 128), (3, 2, 10)]
)
def test_attention_is_that_of_torch_over_what_each_row_sees(
    kv_heads: int, group: int, size: int, window: int, name: str
) -> None:
    keys, values = (short(kv_heads, TOKENS, size, seed=seed) for seed in (1, 2))
    cache = paged(name, keys, values)
    for positions in ([0], [1, 2, 15, 16, 17], range(55, 71), range(176, 192)):
        x = random(len(positions), kv_heads * group, size)
        seen = attention(x, cache, positions, window=window, scale=0.3)
        right = expected(x, keys, values, positions, window, 0.3)
        np.testing.assert_allclose(seen, right, atol=EXACT[name])


@each_format
@pytest.mark.parametrize("window", [0, 9, 66])
@pytest.mark.parametrize("group", [1, 3])
def test_a_row_is_bit_for_bit_the_same_alone_and_beside_any_others(
    window: int, group: int, name: str
) -> None:
    positions = range(118, 134)
    x = random(16, 2 * group, 64)
    cache = paged(name, random(2, TOKENS, 64, seed=1), random(2, TOKENS, 64, seed=2))
    together = attention(x, cache, positions, window=window)
    for cuts in (range(1, 16), (9,), (1, 3, 6, 10), (15,)):
        assert np.array_equal(attention(x, cache, positions, window=window, cuts=cuts), together)


@each_format
def test_where_the_blocks_lie_changes_no_bit(name: str) -> None:
    x, keys, values = random(5, 3, 64), random(1, TOKENS, 64, seed=1), random(1, TOKENS, 64, seed=2)
    one, other = (
        attention(x, paged(name, keys, values, table), range(150, 155), table=table)
        for table in ((0, 1, 2), (5, 3, 1))
    )
    assert np.array_equal(one, other)


@each_format
@pytest.mark.parametrize("window", [0, 20])
def test_what_a_row_does_not_see_does_not_matter_even_if_it_is_no_number(
    window: int, name: str
) -> None:
    x, keys, values = random(6, 3, 64), random(1, TOKENS, 64, seed=1), random(1, TOKENS, 64, seed=2)
    positions = range(100, 106)
    clean = attention(x, paged(name, keys, values), positions, window=window)
    # Row 2 and those before it see nothing from 103 on, nor row 2 anything before its window.
    keys[:, 103:], values[:, 103:] = np.nan, np.inf
    if window:
        keys[:, : 103 - window], values[:, : 103 - window] = np.inf, np.nan
    spoilt = attention(x, paged(name, keys, values), positions, window=window)
    assert np.array_equal(spoilt[2], clean[2])
    assert not np.isfinite(spoilt[3:]).any()


@each_format
def test_scores_whose_exponential_would_overflow_choose_the_best_token(name: str) -> None:
    x, keys = random(1, 2, 64, scale=40), short(1, TOKENS, 64, scale=40, seed=1)
    values = short(1, TOKENS, 64, seed=2)
    best = (x[0] @ keys[0, :51].T).argmax(axis=1)
    seen = attention(x, paged(name, keys, values), [50])
    np.testing.assert_allclose(seen[0], values[0, best], atol=EXACT[name])


@each_format
def test_attention_writes_only_to_its_own_rows_and_heads(name: str) -> None:
    cache = paged(name, random(2, TOKENS, 64, seed=1), random(2, TOKENS, 64, seed=2))
    heads, out = random(4, 4 * 64), np.full((4, 4 * 64), -1, np.float32)
    at, scale = np.arange(7, 11), np.float32(0.125)
    scratch = aligned_zeros((scratch_numbers(4, TOKENS, 64),), np.float32)
    attend(cache, 1, 3, 1, 64, heads, at, np.array(TABLE), 0, scale, scratch, out)
    assert (out[[0, 3]] == -1).all()
    assert (out[:, :128] == -1).all()
    whole = attention(heads.reshape(4, 4, 64), cache, at.tolist()).reshape(4, -1)
    assert np.array_equal(out[1:3, 128:], whole[1:3, 128:])


@each_format
def test_keys_and_values_are_cached_in_the_block_of_their_position_and_nowhere_else(
    name: str,
) -> None:
    held = CACHE_FORMATS[name]
    cache = Cache(
        np.zeros((3, 2, *held.key_shape(40)), held.stored),
        np.zeros((3, 2, *held.value_shape(40)), held.stored),
    )
    heads = np.abs(short(4 + 2 * 2, 40))
    store_heads(cache, heads, np.array([0, 2]), SPAN + 5)
    kept = cache.keys[2], cache.values[2]
    assert [np.count_nonzero(each) for each in kept] == [2 * 40, 2 * 40]
    assert [np.count_nonzero(each) for each in cache] == [2 * 40, 2 * 40]
    # The one token that is seen is the answer, whatever its score.
    out = np.zeros((1, 4 * 40), np.float32)
    scratch = aligned_zeros((scratch_numbers(2, SPAN + 6, 40),), np.float32)
    one: Any = np.float32(1)
    for g in (0, 1):
        at = np.array([SPAN + 5])
        attend(cache, 0, 1, g, 40, heads.reshape(1, -1), at, np.array([0, 2]), 1, one, scratch, out)
    expected = heads[6:].repeat(2, axis=0)
    np.testing.assert_allclose(out.reshape(4, 40), expected, rtol=1e-4)
