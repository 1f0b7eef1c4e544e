"""What most likely follows the end of a text, by how often each continuation occurred."""

import numpy as np
from numpy.typing import NDArray

from outrider.engine.compiling import compiled
from outrider.engine.drafting.lookup.child_table import TOKEN
from outrider.engine.drafting.lookup.suffix_nodes import (
    BASE,
    COUNT,
    FIRST_CHILD,
    LENGTH,
    MATCH,
    POOL_END,
    POOL_TOKEN,
    REST,
    TEXT,
    Forest,
    child_of,
    uncounted_forest,
)
from outrider.engine.drafting.lookup.suffix_texts import rest_of

ROUNDING = 1e-6
"""What the limit on a draft may lie below a whole number and still count as it."""
SLACK = 0.01
"""More than the sum of a draft's chances may be off by rounding."""

Best = tuple[int, int, int, np.float32]


@compiled()
def draft(
    own: Forest,
    local: int,
    others: Forest,
    shared: int,
    shared_root: int,
    history: NDArray[np.int32],
    room: NDArray[np.int32],
    factor: np.float32,
    least: np.float32,
) -> tuple[int, np.float32]:
    """Write a draft into `room`; return its length and its score.

    `history` int32 [T] is the text `local` of `own`. For every match of its last m tokens, the
    draft is the likeliest path from there, at most `factor` x m tokens, as long as the chance of
    all its tokens together is at least `least`. Its score is the sum of these chances, the highest
    counts; of equals the text's own, then the one of the longest match. Others come from the tree
    of all answers, below `shared_root` of `others`, where this answer is the text `shared` or else
    -1.
    """
    own, others = uncounted_forest(own), uncounted_forest(others)
    best = (-1, 0, 0, np.float32(0.0))
    longest = _match(own, local)
    best = _better(own, local, longest, -1, history, room, factor, least, best)
    local_score = best[3]
    longest = _match_of_all(others, shared, shared_root, history)
    best = _better(others, shared, longest, shared_root, history, room, factor, least, best)
    node, offset, most, score = best
    if score == 0:
        return 0, score
    if score > local_score:
        return _follow(others, node, offset, room[:most], least, np.float32(0.0))
    return _follow(own, node, offset, room[:most], least, np.float32(0.0))


@compiled(within=True)
def _better(
    forest: Forest,
    text: int,
    longest: int,
    root: int,
    history: NDArray[np.int32],
    room: NDArray[np.int32],
    factor: np.float32,
    least: np.float32,
    best: Best,
) -> Best:
    """Return node, tokens beyond it, limit and score of the best draft of a tree, or else `best`.

    Longest match first: a shorter one may draft no more, so that soon it cannot score higher.
    """
    texts, pool = forest.texts, forest.pool
    known = 0 if text < 0 else texts[text, LENGTH]
    known_end = 0 if text < 0 else texts[text, BASE] + known
    for match in range(longest, 0, -1):
        most = _limit(match, factor, room.size)
        if most <= best[3]:
            break
        if match <= known:
            node, offset = pool[known_end - match, POOL_END], 0
        else:
            node, offset = _descend(forest, root, history, match)
        score = _follow(forest, node, offset, room[:most], least, best[3])[1]
        if score > best[3]:
            best = (node, offset, most, score)
    return best


@compiled()
def _match_of_all(forest: Forest, shared: int, root: int, history: NDArray[np.int32]) -> int:
    """Return how many of the last tokens of `history` occur in the tree of all answers.

    The answer `shared` itself does not count, but more of the history may occur in others.
    """
    length = history.size
    longest = 0
    if shared >= 0:
        longest = _match(forest, shared)
        if longest < forest.texts[shared, LENGTH]:
            return min(longest, length - 1)
    while longest + 1 < min(length, forest.depth):
        if _descend(forest, root, history, longest + 1)[0] < 0:
            break
        longest += 1
    # Without a prompt the answer is the whole history, which is never matched as a whole.
    return min(longest, length - 1)


@compiled(within=True)
def _limit(match: int, factor: np.float32, room: int) -> int:
    """In single precision, as the rule that this follows to the token."""
    return int(min(float(np.float32(match) * factor) + ROUNDING, float(room)))


@compiled(within=True)
def _match(forest: Forest, text: int) -> int:
    """Return how many of the last tokens of a text occur elsewhere in its tree, or end there.

    Since the last of them came, other texts may have come or gone.
    """
    nodes, texts, pool = forest.nodes, forest.texts, forest.pool
    end = texts[text, BASE] + texts[text, LENGTH]
    most = min(texts[text, LENGTH], forest.depth - 1)
    match = min(texts[text, MATCH], most)
    while match > 0 and nodes[pool[end - match, POOL_END], REST] >= 0:
        match -= 1
    while match < most and nodes[pool[end - match - 1, POOL_END], REST] < 0:
        match += 1
    return match


@compiled()
def _descend(forest: Forest, root: int, history: NDArray[np.int32], match: int) -> tuple[int, int]:
    """Return the node of the last `match` tokens of `history`, -1 where they do not occur.

    Of a leaf also how many of the tokens after its own there are.
    """
    nodes, pool = forest.nodes, forest.pool
    node, offset = root, 0
    for at in range(history.size - match, history.size):
        token = history[at]
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


@compiled(within=True)
def _follow(
    forest: Forest,
    node: int,
    offset: int,
    room: NDArray[np.int32],
    least: np.float32,
    beaten: np.float32,
) -> tuple[int, np.float32]:
    """Write the likeliest path from a node into `room`; return its length and its score.

    It may end as soon as its score cannot become higher than `beaten`.
    """  # fmt: skip
    nodes, pool = forest.nodes, forest.pool
    chance = np.float32(1.0)
    score = np.float32(0.0)
    length = 0
    while length < room.size and nodes[node, REST] < 0:
        child = nodes[node, FIRST_CHILD]
        if child < 0:
            return length, score
        chance *= np.float32(nodes[child, COUNT]) / np.float32(nodes[node, COUNT])
        if chance < least or score + chance * (room.size - length) + SLACK < beaten:
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
