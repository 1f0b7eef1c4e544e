from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.kernels.arrays import Floats, random
from torch.nn import functional

from outrider.engine.kernels.arguments import SPAN, Cache
from outrider.engine.kernels.attention import attend, scratch_numbers
from outrider.engine.kernels.formats.base import PANEL

TOKENS = 3 * SPAN
TABLE = (4, 0, 2)


def paged(keys: Floats, values: Floats, table: Sequence[int]) -> Cache:
    """Keys and values [G, TOKENS, D] in the blocks of `table`; all else is not a number."""
    heads, _, size = keys.shape
    width = -(-size // PANEL) * PANEL
    cache = Cache(
        np.full((6, heads, size, SPAN), np.nan, np.float32),
        np.full((6, heads, SPAN, width), np.nan, np.float32),
    )
    for i, block in enumerate(table):
        tokens = np.s_[i * SPAN : (i + 1) * SPAN]
        cache.keys[block] = keys[:, tokens].transpose(0, 2, 1)
        cache.values[block, :, :, :size] = values[:, tokens]
    return cache


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
    scratch = np.full(scratch_numbers(rows * heads, TOKENS, size), np.nan, np.float32)
    factor: Any = np.float32(scale)
    for first, end in zip((0, *cuts), (*cuts, rows), strict=True):
        for g in range(cache.keys.shape[1]):
            attend(first, end, g, flat, at, blocks, cache, window, factor, scratch, out)
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


@pytest.mark.parametrize("window", [0, 1, 5, SPAN, 70, TOKENS])
@pytest.mark.parametrize(
    ("kv_heads", "group", "size"), [(1, 1, 64), (2, 3, 64), (1, 7, 128), (3, 2, 10)]
)
def test_attention_is_that_of_torch_over_what_each_row_sees(
    kv_heads: int, group: int, size: int, window: int
) -> None:
    keys, values = (random(kv_heads, TOKENS, size, seed=seed) for seed in (1, 2))
    for positions in ([0], [1, 2, 15, 16, 17], range(55, 71), range(176, 192)):
        x = random(len(positions), kv_heads * group, size)
        seen = attention(x, paged(keys, values, TABLE), positions, window=window, scale=0.3)
        right = expected(x, keys, values, positions, window, 0.3)
        np.testing.assert_allclose(seen, right, atol=1e-5)


@pytest.mark.parametrize("window", [0, 9, 66])
def test_a_row_is_bit_for_bit_the_same_alone_and_beside_any_others(window: int) -> None:
    positions = range(118, 134)
    x = random(16, 6, 64)
    cache = paged(random(2, TOKENS, 64, seed=1), random(2, TOKENS, 64, seed=2), TABLE)
    together = attention(x, cache, positions, window=window)
    for cuts in (range(1, 16), (9,), (1, 3, 6, 10), (15,)):
        assert np.array_equal(attention(x, cache, positions, window=window, cuts=cuts), together)


def test_where_the_blocks_lie_changes_no_bit() -> None:
    x, keys, values = random(5, 3, 64), random(1, TOKENS, 64, seed=1), random(1, TOKENS, 64, seed=2)
    one, other = (
        attention(x, paged(keys, values, table), range(150, 155), table=table)
        for table in ((0, 1, 2), (5, 3, 1))
    )
    assert np.array_equal(one, other)


@pytest.mark.parametrize("window", [0, 20])
def test_what_a_row_does_not_see_does_not_matter_even_if_it_is_no_number(window: int) -> None:
    x, keys, values = random(6, 3, 64), random(1, TOKENS, 64, seed=1), random(1, TOKENS, 64, seed=2)
    positions = range(100, 106)
    clean = attention(x, paged(keys, values, TABLE), positions, window=window)
    # Row 2 and those before it see nothing from 103 on, nor row 2 anything before its window.
    keys[:, 103:], values[:, 103:] = np.nan, np.inf
    if window:
        keys[:, : 103 - window], values[:, : 103 - window] = np.inf, np.nan
    spoilt = attention(x, paged(keys, values, TABLE), positions, window=window)
    assert np.array_equal(spoilt[2], clean[2])
    assert not np.isfinite(spoilt[3:]).any()


def test_scores_whose_exponential_would_overflow_choose_the_best_token() -> None:
    x, keys = random(1, 2, 64, scale=40), random(1, TOKENS, 64, scale=40, seed=1)
    values = random(1, TOKENS, 64, seed=2)
    best = (x[0] @ keys[0, :51].T).argmax(axis=1)
    seen = attention(x, paged(keys, values, TABLE), [50])
    np.testing.assert_allclose(seen[0], values[0, best], atol=1e-5)


def test_attention_writes_only_to_its_own_rows_and_heads() -> None:
    cache = paged(random(2, TOKENS, 64, seed=1), random(2, TOKENS, 64, seed=2), TABLE)
    heads, out = random(4, 4 * 64), np.full((4, 4 * 64), -1, np.float32)
    at, scale = np.arange(7, 11), np.float32(0.125)
    scratch = np.empty(scratch_numbers(4, TOKENS, 64), np.float32)
    attend(1, 3, 1, heads, at, np.array(TABLE), cache, 0, scale, scratch, out)
    assert (out[[0, 3]] == -1).all()
    assert (out[:, :128] == -1).all()
    whole = attention(heads.reshape(4, 4, 64), cache, at.tolist()).reshape(4, -1)
    assert np.array_equal(out[1:3, 128:], whole[1:3, 128:])


def test_scratch_suffices_wherever_in_a_block_a_window_begins() -> None:
    for position in range(TOKENS):
        for window in (0, 1, 64, 65, 130):
            start = max(position + 1 - window, 0) if window else 0
            blocks = position // SPAN - start // SPAN + 1
            assert 3 * (blocks * SPAN + 64 + 64) <= scratch_numbers(3, position + 1 - start, 64)
