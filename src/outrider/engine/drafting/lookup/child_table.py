"""The children of a trie's nodes, found by parent and token: a hash table of node numbers."""

import numpy as np
from numpy.typing import NDArray

from outrider.engine.compiling import compiled

PARENT, TOKEN = range(2)
"""The first columns of `nodes` int32 [N, ...], whatever else a node has."""

Nodes = NDArray[np.int32]
Table = NDArray[np.int32]


def empty_table(capacity: int) -> Table:
    """Return a table for `capacity` nodes: a power of 2 of places, at most half of them in use."""
    return np.full(1 << (2 * capacity - 1).bit_length(), -1, np.int32)


@compiled(within=True)
def _home(parent: int, token: int, mask: int) -> int:
    """The place where the search begins."""
    mixed = (np.uint64(parent) << np.uint64(32)) | np.uint64(np.uint32(token))
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed >> np.uint64(32)) & np.uint64(mask))  # type: ignore[return-value]


@compiled(within=True)
def place_of(nodes: Nodes, table: Table, parent: int, token: int) -> int:
    """Return where in `table` the child of `parent` by `token` is, or would be.

    Both are compared, so a child is never mistaken for another.
    """
    mask = table.size - 1
    place = _home(parent, token, mask)
    while True:
        node = table[place]
        if node < 0 or (nodes[node, PARENT] == parent and nodes[node, TOKEN] == token):
            return place
        place = (place + 1) & mask


@compiled()
def erase(nodes: Nodes, table: Table, place: int) -> None:
    """Empty `place`, and move up what was put behind it only because it was taken."""
    mask = table.size - 1
    behind = (place + 1) & mask
    while table[behind] >= 0:
        node = table[behind]
        home = _home(nodes[node, PARENT], nodes[node, TOKEN], mask)
        if ((behind - home) & mask) >= ((behind - place) & mask):
            table[place] = node
            place = behind
        behind = (behind + 1) & mask
    table[place] = -1
