"""What most likely follows the end of a text, by how often each continuation occurred."""

import numpy as np
from numpy.typing import NDArray

from outrider.engine.compiling import compiled
from outrider.engine.drafting.lookup.suffix_nodes import (
    BASE,
    COUNT,
    FIRST_CHILD,
    LENGTH,
    POOL_END,
    POOL_TOKEN,
    REST,
    TEXT,
    TOKEN,
    Forest,
    child_of,
)
from outrider.engine.drafting.lookup.suffix_texts import rest_of

ROUNDING = 1e-6
"""What the limit on a draft may lie below a whole number and still count as it."""


@compiled()
def draft(
    forest: Forest,
    local: int,
    shared: int,
    shared_root: int,
    room: NDArray[np.int32],
    factor: np.float32,
    least: np.float32,
) -> tuple[int, np.float32]:
    """Write a draft into `room`; return its length and its score.

    For every match of the last m tokens of `local`, the draft is the likeliest path from there, at
    most `factor` x m tokens, as long as the chance of all its tokens together is at least `least`.
    Its score is the sum of these chances; of equals the longest match counts. The draft from the
    tree of all answers, below `shared_root` where this answer is the text `shared` or else -1,
    has to score higher than that from the text's own.
    """  # fmt: skip
    own = _best_own(forest, local, room, factor, least)
    other = _best_shared(forest, local, shared, shared_root, room, factor, least)
    node, offset, most, score = own if own[3] >= other[3] else other
    if score == 0:
        return 0, score
    return _follow(forest, node, offset, room[:most], least)


@compiled()
def _limit(match: int, factor: np.float32, room: int) -> int:
    """In single precision, as the rule that this follows to the token."""
    return int(min(float(np.float32(match) * factor) + ROUNDING, float(room)))


@compiled()
def _best_own(
    forest: Forest, local: int, room: NDArray[np.int32], factor: np.float32, least: np.float32
) -> tuple[int, int, int, np.float32]:
    """Return node, tokens beyond it, limit and score of the best draft from the text itself."""
    nodes, pool = forest.nodes, forest.pool
    length = forest.texts[local, LENGTH]
    end = forest.texts[local, BASE] + length
    best = (-1, 0, 0, np.float32(0.0))
    for match in range(1, min(length, forest.depth)):
        node = pool[end - match, POOL_END]
        if nodes[node, REST] >= 0:
            break  # only here, where the text ends
        most = _limit(match, factor, room.size)
        score = _follow(forest, node, 0, room[:most], least)[1]
        if score >= best[3]:
            best = (node, 0, most, score)
    return best


@compiled()
def _best_shared(
    forest: Forest,
    local: int,
    shared: int,
    shared_root: int,
    room: NDArray[np.int32],
    factor: np.float32,
    least: np.float32,
) -> tuple[int, int, int, np.float32]:
    """Return the same from the tree of all answers."""  # fmt: skip
    nodes, texts, pool = forest.nodes, forest.texts, forest.pool
    length = texts[local, LENGTH]
    end = texts[local, BASE] + length
    known = 0 if shared < 0 else texts[shared, LENGTH]
    known_end = 0 if shared < 0 else texts[shared, BASE] + known
    best = (-1, 0, 0, np.float32(0.0))
    for match in range(1, min(length, forest.depth)):
        offset = 0
        if match <= known:
            node = pool[known_end - match, POOL_END]
            if nodes[node, REST] >= 0:
                break  # only here, where the answer ends
        else:
            node, offset = _descend(forest, shared_root, end - match, end)
            if node < 0:
                break
        most = _limit(match, factor, room.size)
        score = _follow(forest, node, offset, room[:most], least)[1]
        if score >= best[3]:
            best = (node, offset, most, score)
    return best


@compiled()
def _descend(forest: Forest, root: int, start: int, end: int) -> tuple[int, int]:
    """Return the node of the tokens of `pool` from `start` to `end`, -1 for no such substring.

    Of a leaf also how many of the tokens after its own there are.
    """
    nodes, pool = forest.nodes, forest.pool
    node, offset = root, 0
    for at in range(start, end):
        token = pool[at, POOL_TOKEN]
        if nodes[node, REST] >= 0:
            if offset == rest_of(forest, node):
                return -1, 0
            here = forest.texts[nodes[node, TEXT], BASE] + nodes[node, REST] + offset
            if pool[here, POOL_TOKEN] != token:
                return -1, 0
            offset += 1
        else:
            node = child_of(forest, node, token)
            if node < 0:
                return -1, 0
    return node, offset


@compiled()
def _follow(
    forest: Forest, node: int, offset: int, room: NDArray[np.int32], least: np.float32
) -> tuple[int, np.float32]:
    """Write the likeliest path from a node into `room`; return its length and its score."""
    nodes, pool = forest.nodes, forest.pool
    chance = np.float32(1.0)
    score = np.float32(0.0)
    length = 0
    while length < room.size and nodes[node, REST] < 0:
        child = nodes[node, FIRST_CHILD]
        if child < 0:
            return length, score
        chance *= np.float32(nodes[child, COUNT]) / np.float32(nodes[node, COUNT])
        if chance < least:
            return length, score
        room[length] = nodes[child, TOKEN]
        score += chance
        length += 1
        node, offset = child, 0
    if length == room.size or chance < least:
        return length, score
    here = forest.texts[nodes[node, TEXT], BASE] + nodes[node, REST]
    for at in range(here + offset, here + min(rest_of(forest, node), offset + room.size - length)):
        room[length] = pool[at, POOL_TOKEN]
        score += chance
        length += 1
    return length, score
