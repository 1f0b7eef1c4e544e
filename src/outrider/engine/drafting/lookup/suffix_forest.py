"""Suffix trees and their texts: the memory that they take, given out and taken back."""

import numpy as np
from numpy.typing import NDArray

from outrider.engine.compiling import compiled
from outrider.engine.drafting.lookup.child_table import empty_table
from outrider.engine.drafting.lookup.suffix_draft import draft
from outrider.engine.drafting.lookup.suffix_nodes import (
    BASE,
    CAPACITY,
    CHILDREN,
    COLUMNS,
    LENGTH,
    LIVE_NODES,
    MANY,
    ROOT,
    TEXT_COLUMNS,
    Forest,
    enter_all,
    new_node,
    uncounted_forest,
)
from outrider.engine.drafting.lookup.suffix_texts import append, clear, remove

_FIRST_NODES = 1_024
_FIRST_POOL = 4_096
_FIRST_TEXTS = 16
_NOTHING_USED = (0, 0, -1, 0, -1)
_SMALLEST_TEXT = 64
_LARGEST_KEPT = 16_384
"""Nodes or tokens: to empty larger arrays may take longer than the next short text does."""


class SuffixForest:
    """Trees of all substrings of up to `depth` tokens, one tree for one text or for many.

    A tree is named by its root and a text by a number; both are given back when they are of no
    more use, and what they took is used again. The arrays grow as needed and do not shrink.
    """

    def __init__(self, depth: int) -> None:
        self._begin(depth)

    def reset(self) -> None:
        """Give back all trees and texts at once."""
        arrays = self.arrays
        if max(len(arrays.nodes), len(arrays.pool)) > _LARGEST_KEPT:
            self._begin(arrays.depth)
            return
        arrays.state[:] = _NOTHING_USED
        arrays.table.fill(-1)
        self._begin_to_give()

    def _begin(self, depth: int) -> None:
        self.arrays = Forest(
            nodes=np.empty((_FIRST_NODES, COLUMNS), np.int32),
            classes=np.empty((_FIRST_NODES, 2), np.int32),
            table=empty_table(_FIRST_NODES),
            texts=np.zeros((_FIRST_TEXTS, TEXT_COLUMNS), np.int64),
            pool=np.empty((_FIRST_POOL, 2), np.int32),
            state=np.array(_NOTHING_USED, np.int64),
            depth=depth,
        )
        self._begin_to_give()

    def _begin_to_give(self) -> None:
        self._roots: set[int] = set()
        self._free_texts = list(range(len(self.arrays.texts)))
        self._used_pool = 0
        self._free_places: dict[int, list[int]] = {}

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, in bytes."""
        arrays = self.arrays
        large = (arrays.nodes, arrays.classes, arrays.table, arrays.texts, arrays.pool)
        return sum(array.nbytes for array in large)

    @property
    def live_nodes(self) -> int:
        """Nodes in use."""
        return int(self.arrays.state[LIVE_NODES])

    def plant(self) -> int:
        """Begin an empty tree and return its root."""
        self._make_room(1)
        root: int = new_node(self.arrays, -1, -1, 0)
        self.arrays.nodes[root, CHILDREN] = MANY
        self._roots.add(root)
        return root

    def fell(self, root: int) -> None:
        """Give back a tree, whose texts are closed or about to be."""
        self._roots.remove(root)
        clear(self.arrays, root)

    def open_text(self, root: int) -> int:
        """Begin an empty text in the tree of `root`."""
        if not self._free_texts:
            count = len(self.arrays.texts)
            more = np.zeros((2 * count, TEXT_COLUMNS), np.int64)
            more[:count] = self.arrays.texts
            self._free_texts.extend(range(count, 2 * count))
            self.arrays = self.arrays._replace(texts=more)
        text = self._free_texts.pop()
        self.arrays.texts[text] = 0
        self.arrays.texts[text, ROOT] = root
        return text

    def close_text(self, text: int, *, keep_tree: bool) -> None:
        """Forget a text; its tree goes on without it if `keep_tree`."""
        if keep_tree:
            remove(self.arrays, text)
        self._give_back(text)
        self._free_texts.append(text)

    def reserve(self, text: int, tokens: int) -> None:
        """Let a text have room for `tokens` in all."""
        base, length, capacity, *_ = self.arrays.texts[text].tolist()
        if tokens <= capacity:
            return
        size = max(_SMALLEST_TEXT, 1 << (tokens - 1).bit_length())
        free = self._free_places.get(size)
        place = free.pop() if free else self._new_place(size)
        pool = self.arrays.pool
        pool[place : place + length] = pool[base : base + length]
        self._give_back(text)
        self.arrays.texts[text, [BASE, CAPACITY]] = place, size

    def extend(self, text: int, tokens: NDArray[np.int32]) -> None:
        """Add `tokens` int32 [T] to the end of a text."""
        length = int(self.arrays.texts[text, LENGTH])
        self.reserve(text, length + len(tokens))
        while not extend(self.arrays, text, tokens, length):
            self.grow()

    def grow(self) -> None:
        """Double the room for nodes."""
        self._make_room(len(self.arrays.nodes) + 1)

    def _make_room(self, nodes: int) -> None:
        """Let there be at least so many unused nodes, by doubling."""
        arrays = self.arrays
        count = len(arrays.nodes)
        if arrays.state[LIVE_NODES] + nodes <= count:
            return
        more = Forest(
            nodes=np.empty((2 * count, COLUMNS), np.int32),
            classes=np.empty((2 * count, 2), np.int32),
            table=empty_table(2 * count),
            texts=arrays.texts,
            pool=arrays.pool,
            state=arrays.state,
            depth=arrays.depth,
        )
        more.nodes[:count] = arrays.nodes
        more.classes[:count] = arrays.classes
        for root in self._roots:
            enter_all(more, root)
        self.arrays = more

    def _new_place(self, size: int) -> int:
        place = self._used_pool
        self._used_pool += size
        pool = self.arrays.pool
        if self._used_pool > len(pool):
            more = np.empty((1 << (self._used_pool - 1).bit_length(), 2), np.int32)
            more[:place] = pool[:place]
            self.arrays = self.arrays._replace(pool=more)
        return place

    def _give_back(self, text: int) -> None:
        base, _, capacity, *_ = self.arrays.texts[text].tolist()
        if capacity:
            self._free_places.setdefault(capacity, []).append(base)


@compiled()
def extend(forest: Forest, text: int, tokens: NDArray[np.int32], known: int) -> bool:
    """Add `tokens` to a text of `known` tokens, or go on with it; False where nodes run out."""
    forest = uncounted_forest(forest)
    while forest.texts[text, LENGTH] - known < tokens.size:
        length = forest.texts[text, LENGTH]
        most = min(forest.depth, length + 1)
        if forest.state[LIVE_NODES] + most > forest.nodes.shape[0]:
            return False
        append(forest, text, tokens[length - known])
    return True


@compiled()
def catch_up_and_draft(
    nodes: NDArray[np.int32],
    classes: NDArray[np.int32],
    table: NDArray[np.int32],
    texts: NDArray[np.int64],
    pool: NDArray[np.int32],
    state: NDArray[np.int64],
    depth: int,
    local: int,
    shared: int,
    shared_root: int,
    prompt: int,
    tokens: NDArray[np.int32],
    room: NDArray[np.int32],
    factor: np.float32,
    least: np.float32,
) -> tuple[int, np.float32]:
    """Add what `tokens` has more to its own text and, after `prompt` tokens, to the shared one.

    Then draft from them, see `draft`; -1 where nodes run out, to be called again with more. The
    arrays come one by one, since a call with a tuple takes 2 microseconds longer.
    """
    forest = Forest(nodes, classes, table, texts, pool, state, depth)
    if not extend(forest, local, tokens, 0):
        return -1, np.float32(0.0)
    if shared >= 0 and not extend(forest, shared, tokens[prompt:], 0):
        return -1, np.float32(0.0)
    return draft(forest, local, forest, shared, shared_root, tokens, room, factor, least)
