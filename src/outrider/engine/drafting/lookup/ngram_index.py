"""Where the endings of a growing text occurred before, for n-gram drafting."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from outrider.engine.compiling import compiled
from outrider.engine.drafting.lookup.child_table import (
    PARENT,
    TOKEN,
    Nodes,
    Table,
    empty_table,
    place_of,
)

FIRST, LAST = 2, 3
"""Columns of `nodes`, after those of `child_table`."""
INDEXED, USED, DEPTH = range(3)
"""Places in `state`: tokens indexed, nodes in use, and the longest n whose n-gram occurred."""

_ROOT = 0
_FIRST_CAPACITY = 128

State = NDArray[np.int64]
Found = NDArray[np.int32]
Tokens = NDArray[np.int32]


class NgramIndex:
    """Knows of one text, for each n up to `longest`, where its last n tokens occurred before.

    The nodes form a trie of n-grams read backwards: a child adds the token before. A node is
    looked up by its parent and that token, exactly, so no two n-grams are ever mistaken for each
    other. An n-gram that occurred once has a node only if the n-gram of n - 1 tokens in it had
    occurred before that; what lies beyond is read off the text when it comes again. A token
    therefore costs at most `longest` look-ups, however long the text is, and one or two where
    nothing repeats itself.
    """

    __slots__ = ("found", "longest", "nodes", "state", "table")

    def __init__(self, longest: int) -> None:
        self.longest = longest
        capacity = max(_FIRST_CAPACITY, 2 * longest)
        self.nodes = np.empty((capacity, 4), np.int32)
        self.table = empty_table(capacity)
        self.state = np.array([0, 1, 0], np.int64)
        self.found = np.empty((2, longest), np.int32)

    @classmethod
    def of(cls, tokens: Tokens, longest: int) -> Self:
        """Index all of `tokens` int32 [T]."""
        index = cls(longest)
        index.extend(tokens)
        return index

    @property
    def nbytes(self) -> int:
        """Memory of the index, in bytes."""
        return self.nodes.nbytes + self.table.nbytes

    @property
    def depth(self) -> int:
        """The longest n, `longest` at most, whose last n tokens occurred before."""
        return int(self.state[DEPTH])

    def extend(self, tokens: Tokens) -> None:
        """Catch up with `tokens` int32 [T], the whole text, of which the beginning is known."""
        while not catch_up(self.nodes, self.table, self.state, self.found, tokens):
            self._grow()

    def draft(
        self, tokens: Tokens, room: NDArray[np.int32], shortest: int, longest: int, earliest: bool
    ) -> int:
        """Catch up with `tokens`, write what followed the match into `room`, return how many.

        The longest n of `shortest` to `longest` counts, the earliest or else the most recent
        place of its n-gram before the end.
        """
        while True:
            drafted: int = catch_up_and_draft(
                self.nodes, self.table, self.state, self.found, tokens, room,
                shortest, longest, earliest,
            )  # fmt: skip
            if drafted >= 0:
                return drafted
            self._grow()

    def _grow(self) -> None:
        nodes = np.empty((2 * len(self.nodes), 4), np.int32)
        nodes[: len(self.nodes)] = self.nodes
        self.nodes = nodes
        self.table = empty_table(len(nodes))
        refill(nodes, self.table, self.state)


@compiled()
def refill(nodes: Nodes, table: Table, state: State) -> None:
    """Enter every node into an empty `table`."""
    for node in range(1, state[USED]):
        table[place_of(nodes, table, nodes[node, PARENT], nodes[node, TOKEN])] = node


@compiled()
def take(nodes: Nodes, table: Table, state: State, found: Found, tokens: Tokens, at: int) -> None:
    """Index the token at `at`, the first that is not yet, for which there must be room.

    `found` [2, longest] gets for each n up to `state[DEPTH]` the last position of the first and
    of the most recent earlier n-gram like the one that ends at `at`.
    """
    parent = _ROOT
    depth = 0
    for length in range(1, min(found.shape[1], at + 1) + 1):
        token = tokens[at - length + 1]
        place = place_of(nodes, table, parent, token)
        node = table[place]
        if node >= 0:
            first, last = nodes[node, FIRST], nodes[node, LAST]
            nodes[node, LAST] = at
        else:
            node = state[USED]
            state[USED] += 1
            table[place] = node
            nodes[node, PARENT] = parent
            nodes[node, TOKEN] = token
            nodes[node, LAST] = at
            # Where the shorter n-gram came first is the one place that had no node for this one.
            first = nodes[parent, FIRST]
            if parent == _ROOT or first < length - 1 or tokens[first - length + 1] != token:
                nodes[node, FIRST] = at
                break
            nodes[node, FIRST] = last = first
        depth = length
        found[0, depth - 1] = first
        found[1, depth - 1] = last
        parent = node
    state[DEPTH] = depth
    state[INDEXED] = at + 1


@compiled()
def catch_up(nodes: Nodes, table: Table, state: State, found: Found, tokens: Tokens) -> bool:
    """Index what `tokens` has more; False where `nodes` has to grow first."""
    longest = found.shape[1]
    for at in range(state[INDEXED], tokens.size):
        if state[USED] + longest > nodes.shape[0]:
            return False
        take(nodes, table, state, found, tokens, at)
    return True


@compiled()
def draft_into(
    room: NDArray[np.int32],
    state: State,
    found: Found,
    tokens: Tokens,
    shortest: int,
    longest: int,
    earliest: bool,
) -> int:
    """Write the tokens after the match into `room` and return how many there are.

    All of `tokens` is indexed; `longest` is at most what the index is for.
    """
    length = min(state[DEPTH], longest)
    if length < shortest:
        return 0
    match = found[0 if earliest else 1, length - 1]
    drafted = min(room.size, tokens.size - 1 - match)
    for at in range(drafted):  # a slice assignment here takes seconds to compile
        room[at] = tokens[match + 1 + at]
    return drafted


@compiled()
def catch_up_and_draft(
    nodes: Nodes,
    table: Table,
    state: State,
    found: Found,
    tokens: Tokens,
    room: NDArray[np.int32],
    shortest: int,
    longest: int,
    earliest: bool,
) -> int:
    """Both in one call, which is what costs most of a step; -1 where `nodes` has to grow first."""
    if not catch_up(nodes, table, state, found, tokens):
        return -1
    return draft_into(room, state, found, tokens, shortest, longest, earliest)
