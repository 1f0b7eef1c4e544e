"""A Llama decoder for a ragged batch of rows, from token ids to logits, in one compiled call.

Shapes: R rows, L layers, H hidden size (whole panels), Q query heads, G key/value heads, D head
size, I intermediate size, C cache capacity in tokens. Packed weights are as `panel.pack` makes
them. Each row carries its position and the cache slot of its request; rows of one request must come
in ascending order of position. Every sum runs in an order that the other rows cannot change.

All threads of a team run `forward` with the same arguments but for their number. What they share
is written in regions, whose pieces they divide (see `team`); what is small, such as a norm, each
thread computes for itself.
"""

import math
from typing import Any

import numpy as np

from outrider.engine.compiling import compiled
from outrider.engine.kernels.block import LANES, SUM_VECTORS, as_float32, multiply_block
from outrider.engine.kernels.exponential import exponentiate
from outrider.engine.kernels.panel import PANEL, panel_product
from outrider.engine.kernels.team import finish, take, wait

_MAX_HEADS = SUM_VECTORS // 4

SPAN = 4 * LANES
"""Cached tokens scored at once; capacity and head size are multiples of it."""


@compiled(fastmath={"reassoc", "contract"})
def rms_norm(x: Any, weight: Any, epsilon: float, out: Any) -> None:
    """Root-mean-square norm of each row of `x` [R, H] into `out`."""
    for r in range(x.shape[0]):
        squares = np.float32(0.0)
        for i in range(x.shape[1]):
            squares += x[r, i] * x[r, i]
        scale = np.float32(1.0) / np.sqrt(squares / np.float32(x.shape[1]) + epsilon)
        for i in range(x.shape[1]):
            out[r, i] = x[r, i] * scale * weight[i]


@compiled()
def rotate(heads: Any, cos: Any, sin: Any) -> None:
    """Rotary embedding in place: `heads` is [n, D], the halves of a head form the pairs."""
    half = cos.shape[0]
    for h in range(heads.shape[0]):
        for i in range(half):
            a, b = heads[h, i], heads[h, i + half]
            heads[h, i] = a * cos[i] - b * sin[i]
            heads[h, i + half] = b * cos[i] + a * sin[i]


@compiled(fastmath=True)
def shift_scores(scores: Any, row: int, length: int, scale: Any) -> None:
    """Scales a row of scores and takes its maximum away, so that exponentials cannot overflow."""
    highest = scores[row, 0]
    for t in range(length):
        if scores[row, t] > highest:  # noqa: PLR1730  numba does not vectorize `max`
            highest = scores[row, t]
    for t in range(length):
        scores[row, t] = (scores[row, t] - highest) * scale


@compiled(fastmath=True)
def normalise(weights: Any, row: int, length: int) -> None:
    """Divides a row of weights by their sum."""
    total = np.float32(0.0)
    for t in range(length):
        total += weights[row, t]
    scale = np.float32(1.0) / total
    for t in range(length):
        weights[row, t] *= scale


@compiled()
def attend(x: Any, first: int, heads: int, keys: Any, values: Any, length: int, out: Any) -> None:
    """Attention of the query heads `x[first : first + heads]` into the same rows of `out`.

    `x` and `out` are [heads, D]. The heads share one cache head, of which they see the first
    `length` tokens: `keys` [C / SPAN, D, SPAN] and `values` [C, D], with D a multiple of `SPAN`.
    """
    size = keys.shape[1]
    spans = -(-length // SPAN)
    scores = np.empty((heads, spans * SPAN), np.float32)
    for span in range(spans):
        for h in range(0, heads, _MAX_HEADS):
            count = min(_MAX_HEADS, heads - h)
            multiply_block(keys[span], 0, size, x, first + h, 0, scores, h, span * SPAN, count, 4)
    scale = np.float32(1.0 / math.sqrt(size))
    for h in range(heads):
        shift_scores(scores, h, length, scale)
        exponentiate(scores, h, 0, length)
        normalise(scores, h, length)
    for column in range(0, size, SPAN):
        for h in range(0, heads, _MAX_HEADS):
            count = min(_MAX_HEADS, heads - h)
            multiply_block(values, column, length, scores, h, 0, out, first + h, column, count, 4)


@compiled()
def embed(token_ids: Any, table: Any, out: Any) -> None:
    """Rows `token_ids` [R] of a packed embedding into `out` [R, H]."""
    for r in range(token_ids.shape[0]):
        panel, column = token_ids[r] // PANEL, token_ids[r] % PANEL
        half, lane = column // table.shape[2], column % table.shape[2]
        for i in range(out.shape[1]):
            out[r, i] = as_float32(table[panel, i, lane], half)


@compiled()
def store_heads(
    heads: Any, query_heads: int, rope: Any, keys: Any, values: Any, position: int
) -> None:
    """Rotates one row's query and key heads in place and caches its keys and values.

    `heads` is [Q + 2 G, D], `rope` the cosines and sines [D / 2] of the position, `keys` [G, C /
    SPAN, D, SPAN] and `values` [G, C, D] the cache of the row's request.
    """
    kv_heads = keys.shape[0]
    rotate(heads[: query_heads + kv_heads], rope[0], rope[1])
    span, place = position // SPAN, position % SPAN
    for g in range(kv_heads):
        for d in range(heads.shape[1]):
            keys[g, span, d, place] = heads[query_heads + g, d]
            values[g, position, d] = heads[query_heads + kv_heads + g, d]


@compiled()
def add_product(panel: Any, inputs: Any, scratch: Any, x: Any, column: int) -> None:
    """Adds `inputs @ panel` to the columns of the residual stream `x` [R, H] from `column` on."""
    panel_product(panel, inputs, scratch, 0)
    for r in range(x.shape[0]):
        for i in range(PANEL):
            x[r, column + i] += scratch[r, i]


@compiled(fastmath={"contract"})
def gated_product(gate: Any, up: Any, inputs: Any, scratch: Any, out: Any, column: int) -> None:
    """`silu(inputs @ gate) * (inputs @ up)` into the columns of `out` [R, I] from `column` on.

    `scratch` is [R, 3 PANEL].
    """
    panel_product(gate, inputs, scratch, 0)
    panel_product(up, inputs, scratch, PANEL)
    for r in range(out.shape[0]):
        for i in range(PANEL):
            scratch[r, 2 * PANEL + i] = -scratch[r, i]
        exponentiate(scratch, r, 2 * PANEL, PANEL)
        for i in range(min(PANEL, out.shape[1] - column)):
            silu = scratch[r, i] / (np.float32(1.0) + scratch[r, 2 * PANEL + i])
            out[r, column + i] = silu * scratch[r, PANEL + i]


REGIONS_PER_LAYER = 6


@compiled()
def attention_half(
    thread: int,
    counters: Any,
    region: int,
    rows: Any,
    weights: Any,
    rope: Any,
    cache: Any,
    shared: Any,
    scratch: Any,
) -> None:
    """One thread's part of a layer's attention: four regions from `region` on.

    `weights` are the packed [(Q + 2 G) D, H] and [H, Q D], `cache` the layer's, `scratch` the
    thread's own [R, H] (which holds the normed rows) and [R, 3 PANEL]; else as `forward`.
    """
    _, positions, slots, _ = rows
    qkv, output = weights
    keys, values = cache
    x, heads, attended, _ = shared
    normed, product = scratch
    count, query_heads, kv_heads = x.shape[0], attended.shape[1], keys.shape[1]
    group = query_heads // kv_heads
    heads_flat = heads.reshape(count, -1)
    attended_flat = attended.reshape(count, -1)

    while True:
        p = take(counters, region, thread, qkv.shape[0])
        if p < 0:
            break
        panel_product(qkv[p], normed, heads_flat, p * PANEL)
        finish(counters, region)
    wait(counters, region, qkv.shape[0])

    while True:
        r = take(counters, region + 1, thread, count)
        if r < 0:
            break
        at, slot = positions[r], slots[r]
        row_rope = (rope[0][at], rope[1][at])
        store_heads(heads[r], query_heads, row_rope, keys[slot], values[slot], at)
        finish(counters, region + 1)
    wait(counters, region + 1, count)

    while True:
        item = take(counters, region + 2, thread, count * kv_heads)
        if item < 0:
            break
        # Row after row of one cache head, which so stays near.
        g, r = item // count, item % count
        k, v = keys[slots[r], g], values[slots[r], g]
        attend(heads[r], g * group, group, k, v, positions[r] + 1, attended[r])
        finish(counters, region + 2)
    wait(counters, region + 2, count * kv_heads)

    while True:
        p = take(counters, region + 3, thread, output.shape[0])
        if p < 0:
            break
        add_product(output[p], attended_flat, product, x, p * PANEL)
        finish(counters, region + 3)
    wait(counters, region + 3, output.shape[0])


@compiled()
def mlp_half(
    thread: int, counters: Any, region: int, weights: Any, shared: Any, scratch: Any
) -> None:
    """One thread's part of a layer's MLP: two regions from `region` on, else as `attention_half`.

    `weights` are the packed gate and up [2 I, H] and down [H, I].
    """
    gate_up, down = weights
    x, _, _, activated = shared
    normed, product = scratch
    half = gate_up.shape[0] // 2

    while True:
        p = take(counters, region, thread, half)
        if p < 0:
            break
        gated_product(gate_up[p], gate_up[half + p], normed, product, activated, p * PANEL)
        finish(counters, region)
    wait(counters, region, half)

    while True:
        p = take(counters, region + 1, thread, down.shape[0])
        if p < 0:
            break
        add_product(down[p], activated, product, x, p * PANEL)
        finish(counters, region + 1)
    wait(counters, region + 1, down.shape[0])


@compiled()
def forward(
    thread: int,
    counters: Any,  # new_counters(REGIONS_PER_LAYER x L + 2, threads)
    rows: Any,  # token ids, positions, slots [R] each, and the wanted rows [W]; all int64
    layers: Any,  # as `fused.pack_layers` gives them
    ends: Any,  # packed embedding [V, H], final norm [H], packed head [V, H]
    rope: Any,  # cosines and sines [C, D / 2]
    cache: Any,  # keys [L, slots, G, C / SPAN, D, SPAN] and values [L, slots, G, C, D]
    shared: Any,  # [R, H], [R, Q + 2 G, D], [R, Q, D], [R, I]: one array for all threads
    epsilon: float,
    logits: Any,  # [W, V in whole panels], the result
) -> None:
    """One thread's part of a forward pass: caches keys and values, leaves `logits`."""
    token_ids, _, _, wanted = rows
    attention_norms, qkv, output, mlp_norms, gate_up, down = layers
    embedding, final_norm, head = ends
    keys, values = cache
    x = shared[0]
    count, hidden = x.shape
    normed = np.empty((count, hidden), np.float32)
    scratch = (normed, np.empty((count, 3 * PANEL), np.float32))

    while True:
        if take(counters, 0, thread, 1) < 0:
            break
        embed(token_ids, embedding, x)
        finish(counters, 0)
    wait(counters, 0, 1)

    region = 1
    for layer in range(qkv.shape[0]):
        rms_norm(x, attention_norms[layer], epsilon, normed)
        weights = (qkv[layer], output[layer])
        held = (keys[layer], values[layer])
        attention_half(thread, counters, region, rows, weights, rope, held, shared, scratch)
        rms_norm(x, mlp_norms[layer], epsilon, normed)
        mlp_half(thread, counters, region + 4, (gate_up[layer], down[layer]), shared, scratch)
        region += REGIONS_PER_LAYER

    last = np.empty((wanted.shape[0], hidden), np.float32)
    for w in range(wanted.shape[0]):
        last[w] = x[wanted[w]]
    rms_norm(last, final_norm, epsilon, last)
    while True:
        p = take(counters, region, thread, head.shape[0])
        if p < 0:
            break
        panel_product(head[p], last, logits, p * PANEL)
        finish(counters, region)
    wait(counters, region, head.shape[0])
