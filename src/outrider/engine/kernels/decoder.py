"""A decoder for a ragged batch of rows, from token ids to logits, in one compiled call.

Every sum runs in an order that the other rows cannot change. All threads of a team run `forward`
with the same arguments (see `arguments`) but for their number. What they share is written in
regions, whose pieces they divide (see `team`); what is small, such as a norm, each thread computes
for itself.
"""

from typing import Any

import numpy as np

from outrider.engine.compiling import compiled, uncounted
from outrider.engine.kernels.arguments import Cache
from outrider.engine.kernels.attention.registry import attend, store_heads
from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.gate import gated_product
from outrider.engine.kernels.heads import prepare_heads
from outrider.engine.kernels.likeliest import decide, look
from outrider.engine.kernels.next_panel import panel_after
from outrider.engine.kernels.norm import add_norm, rms_norm
from outrider.engine.kernels.products import (
    panel_product,
    prepared,
    put_away,
    room_for,
    stored_weight,
)
from outrider.engine.kernels.team import finish, take, wait
from outrider.engine.kernels.waiting import wait_asking

REGIONS_PER_LAYER = 8


@compiled()
def embed(token: int, table: Any, scale: Any, out: Any) -> None:
    """Row `token` of a packed embedding, scaled, into `out` [H]."""
    for i in range(out.shape[0]):
        out[i] = stored_weight(table, token, i) * scale


@compiled()
def add_product(panel: Any, following: Any, inputs: Any, scratch: Any, x: Any, column: int) -> None:
    """Adds `inputs @ panel` to the columns of the residual stream `x` [R, H] from `column` on."""
    panel_product(panel, following, inputs, scratch, 0)
    width = min(PANEL, x.shape[1] - column)
    for r in range(x.shape[0]):
        # Whole slices, for whose indices no wrapping is checked, become vectors.
        held, added = x[r, column : column + width], scratch[r, :width]
        for i in range(width):
            held[i] += added[i]


@compiled(inline=True)
def add_branch(
    thread: int,
    counters: Any,
    region: int,
    panels: Any,
    branch_inputs: Any,
    norm: Any,
    epsilon: Any,
    shared: Any,
    scratch: Any,
    room: Any,
    following: Any,
) -> None:
    """One thread's part of adding `branch_inputs @ panels` to the residual stream, in two regions.

    `norm` [H] is that of the product before it is added, of size 0 where the family has none: it
    needs whole rows, so the product has to be complete. `following` are the panels that are
    needed next.
    """
    x, branch = shared.residual, shared.branch
    normed = norm.shape[0] > 0
    inputs = prepared(panels, branch_inputs, room)
    while True:
        p = take(counters, region, thread, panels.shape[0])
        if p < 0:
            break
        after = panel_after(counters, thread, panels, p, following)
        if normed:
            panel_product(panels[p], after, inputs, branch, p * PANEL)
        else:
            add_product(panels[p], after, inputs, scratch, x, p * PANEL)
        finish(counters, region)
    asked = wait_asking(counters, region, panels.shape[0], thread, following, 0)
    if not normed:
        return
    while True:
        r = take(counters, region + 1, thread, x.shape[0])
        if r < 0:
            break
        add_norm(branch[r], norm, epsilon, x[r])
        finish(counters, region + 1)
    wait_asking(counters, region + 1, x.shape[0], thread, following, asked)


@compiled(inline=True)
def attend_rows(
    thread: int,
    counters: Any,
    region: int,
    batch: Any,
    layers: Any,
    layer: int,
    rope: Any,
    cache: Any,  # of the layer
    shared: Any,
    constants: Any,
    normed: Any,
    room: Any,
    only_cached: bool,  # noqa: FBT001
) -> None:
    """One thread's part of `shared.attended` from the normed rows [R, H], in three regions.

    Where it is `only_cached`, keys and values are all that is made of the rows.
    """
    heads, positions = shared.heads, batch.positions
    count = heads.shape[0]
    kv_heads, size = cache.keys.shape[1], 2 * rope.cos.shape[2]
    width = shared.attended.shape[1] + 2 * kv_heads * size
    extras = (layers.qkv_bias[layer], layers.query_norm[layer], layers.key_norm[layer])
    cos, sin = rope.cos[layers.rope[layer]], rope.sin[layers.rope[layer]]
    qkv = layers.qkv[layer]
    inputs = prepared(qkv, normed, room)

    following = layers.output[layer]
    while True:
        p = take(counters, region, thread, qkv.shape[0])
        if p < 0:
            break
        after = panel_after(counters, thread, qkv, p, following)
        panel_product(qkv[p], after, inputs, heads, p * PANEL)
        finish(counters, region)
    asked = wait_asking(counters, region, qkv.shape[0], thread, following, 0)

    while True:
        r = take(counters, region + 1, thread, count)
        if r < 0:
            break
        row = heads[r][:width].reshape(width // size, size)
        at = positions[r]
        prepare_heads(row, kv_heads, extras, constants.epsilon, (cos[at], sin[at]))
        store_heads(cache, row, batch.tables[batch.sequences[r]], at)
        finish(counters, region + 1)
    asked = wait_asking(counters, region + 1, count, thread, following, asked)
    if only_cached:
        return

    chunks = batch.chunks.shape[0] - 1
    while True:
        item = take(counters, region + 2, thread, chunks * kv_heads)
        if item < 0:
            break
        # Chunk after chunk of one cache head, which so stays near.
        g, c = item // chunks, item % chunks
        attend(
            cache,
            batch.chunks[c],
            batch.chunks[c + 1],
            g,
            size,
            heads,
            positions,
            batch.tables[batch.sequences[batch.chunks[c]]],
            layers.window[layer],
            constants.attention_scale,
            shared.scratch[thread],
            shared.attended,
        )
        finish(counters, region + 2)
    wait_asking(counters, region + 2, chunks * kv_heads, thread, following, asked)


@compiled(inline=True)
def activate_rows(
    thread: int,
    counters: Any,
    region: int,
    gate_up: Any,
    gelu: bool,  # noqa: FBT001
    normed: Any,
    scratch: Any,
    out: Any,
    room: Any,
    following: Any,
) -> None:
    """One thread's part of an MLP's first half, from `normed` [R, H] to `out` [R, I]; a region.

    `following` are the panels that are needed next.
    """
    half = gate_up.shape[0] // 2
    inputs = prepared(gate_up, normed, room)
    while True:
        p = take(counters, region, thread, half)
        if p < 0:
            break
        after = panel_after(counters, thread, gate_up[:half], p, following)
        gated_product(gate_up[p], gate_up[half + p], after, inputs, gelu, scratch, out, p * PANEL)
        finish(counters, region)
    wait_asking(counters, region, half, thread, following, 0)


@compiled(inline=True)
def end_rows(
    thread: int,
    counters: Any,
    region: int,
    wanted: Any,
    ends: Any,
    x: Any,
    constants: Any,
    logits: Any,
    seen: Any,
) -> None:
    """One thread's part of the `logits` of the `wanted` rows of `x` [R, H]; a region."""
    head = ends.head
    last = np.empty((wanted.shape[0], x.shape[1]), np.float32)
    for w in range(wanted.shape[0]):
        last[w] = x[wanted[w]]
    rms_norm(last, ends.norm, constants.epsilon, last)
    inputs = prepared(head, last, room_for(head, last.shape[0], last.shape[1]))
    while True:
        p = take(counters, region, thread, head.shape[0])
        if p < 0:
            break
        after = panel_after(counters, thread, head, p, head[:0])
        panel_product(head[p], after, inputs, logits, p * PANEL)
        look(logits, p, constants.vocab_size, seen[thread])
        finish(counters, region)
    wait(counters, region, head.shape[0])


@compiled()
def forward(
    thread: int,
    counters: Any,  # new_counters(REGIONS_PER_LAYER x L + 2, threads)
    batch: Any,
    layers: Any,
    ends: Any,
    rope: Any,
    cache: Any,
    shared: Any,
    constants: Any,
    logits: Any,  # [W, V in whole panels], the result
    seen: Any,  # of them, by thread: see `likeliest`
    likeliest: Any,  # tokens and log-odds [W], results too
) -> None:
    """One thread's part of a forward pass: caches keys and values, leaves `logits`.

    Thread 0 also leaves the `likeliest` of them.
    """
    counters, batch, layers, ends, rope, cache, shared, logits, seen = uncounted(
        (counters, batch, layers, ends, rope, cache, shared, logits, seen)
    )
    x, epsilon = shared.residual, constants.epsilon
    count, hidden = x.shape
    # A thread that wakes up late may still be in the last pass: it writes to what is its own.
    normed = np.empty((count, hidden), np.float32)
    scratch = np.empty((count, 2 * PANEL), np.float32)
    deepest = max(hidden, shared.attended.shape[1], shared.activated.shape[1])
    room = room_for(layers.qkv, count, deepest)

    while True:
        r = take(counters, 0, thread, count)
        if r < 0:
            break
        embed(batch.token_ids[r], ends.embedding, constants.embedding_scale, x[r])
        finish(counters, 0)
    wait(counters, 0, count)

    last_layer = layers.qkv.shape[0] - 1
    nothing_wanted = batch.wanted.shape[0] == 0
    for i in range(last_layer + 1):
        region = 1 + REGIONS_PER_LAYER * i
        held = Cache(cache.keys[i], cache.values[i])
        rms_norm(x, layers.attention_norm[i], epsilon, normed)
        # A piece of a prompt ends here: later rows read its keys and values alone.
        ends_here = nothing_wanted and i == last_layer
        attend_rows(
            thread,
            counters,
            region,
            batch,
            layers,
            i,
            rope,
            held,
            shared,
            constants,
            normed,
            room,
            ends_here,
        )
        if ends_here:
            put_away(layers.qkv)
            return
        panels, norm = layers.output[i], layers.output_norm[i]
        add_branch(
            thread,
            counters,
            region + 3,
            panels,
            shared.attended,
            norm,
            epsilon,
            shared,
            scratch,
            room,
            layers.gate_up[i],
        )
        rms_norm(x, layers.mlp_norm[i], epsilon, normed)
        activated = shared.activated
        activate_rows(
            thread,
            counters,
            region + 5,
            layers.gate_up[i],
            constants.gelu,
            normed,
            scratch,
            activated,
            room,
            layers.down[i],
        )
        panels, norm = layers.down[i], layers.down_norm[i]
        following = layers.qkv[min(i + 1, last_layer)]
        if i == last_layer:
            following = following[:0]
        add_branch(
            thread,
            counters,
            region + 6,
            panels,
            activated,
            norm,
            epsilon,
            shared,
            scratch,
            room,
            following,
        )

    region = 1 + REGIONS_PER_LAYER * (last_layer + 1)
    end_rows(thread, counters, region, batch.wanted, ends, x, constants, logits, seen)
    put_away(ends.head)
    put_away(layers.qkv)
    if thread == 0:
        decide(seen, likeliest.tokens, likeliest.log_odds)
