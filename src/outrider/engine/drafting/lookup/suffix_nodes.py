"""The arrays in which suffix trees lie, and the nodes in them.

A tree holds every substring of its texts up to `depth` tokens long, each with the number of
times that it occurs: a node stands for the substring that leads to it. What occurs once has a
single node, a leaf, where it leaves all others; the rest of it is read off its text, so that a
leaf grows with its text at no cost. Several trees share the arrays, each below a root of its own.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.engine.compiling import compiled, uncounted
from outrider.engine.drafting.lookup.child_table import PARENT, TOKEN, erase, place_of

COUNT, FIRST_CHILD, LAST_CHILD, NEXT, PREVIOUS, CLASS = range(2, 8)
"""Columns of a node. Its children are in a list; among its siblings it is in the class of those
that occur equally often."""
REST, TEXT, DEPTH, CHILDREN = range(8, 12)
"""More columns. Of a leaf, the position in `TEXT` of the first token after the leaf's own; of
other nodes, -1. How many children there are while they are few, else `MANY`."""
COLUMNS = 12

MANY = 5
"""So many children, and those of a root, are found by the table, and from then on; fewer by
looking at one after the other."""

HEAD, TAIL = range(2)
"""Columns of a class: the first and the last of its nodes among their siblings."""

BASE, LENGTH, CAPACITY, ROOT, MATCH = range(5)
"""Columns of a text: its place in `pool`, tokens, room for tokens, the root of its tree, and how
many of its last tokens occurred before when the last of them came."""
TEXT_COLUMNS = 5

POOL_TOKEN, POOL_END = range(2)
"""Columns of `pool`: a token, and the node of the longest substring that begins with it."""

LIVE_NODES, USED_NODES, FREE_NODE, USED_CLASSES, FREE_CLASS = range(5)
"""Places in `state`: nodes in use, nodes ever used, the first of those given back, and so on."""


class Forest(NamedTuple):
    """All that compiled functions need of the trees."""

    nodes: NDArray[np.int32]
    classes: NDArray[np.int32]
    table: NDArray[np.int32]
    texts: NDArray[np.int64]
    pool: NDArray[np.int32]
    state: NDArray[np.int64]
    depth: int


@compiled(within=True)
def uncounted_forest(forest: Forest) -> Forest:
    """For as long as the caller holds `forest`."""
    return Forest(
        uncounted(forest.nodes),
        uncounted(forest.classes),
        uncounted(forest.table),
        uncounted(forest.texts),
        uncounted(forest.pool),
        uncounted(forest.state),
        forest.depth,
    )


@compiled(within=True)
def new_node(forest: Forest, parent: int, token: int, depth: int) -> int:
    """Take a node that is no leaf, occurs once and has neither children nor siblings yet."""
    nodes, state = forest.nodes, forest.state
    node = state[FREE_NODE]
    if node >= 0:
        state[FREE_NODE] = nodes[node, NEXT]
    else:
        node = state[USED_NODES]
        state[USED_NODES] = node + 1
    state[LIVE_NODES] += 1
    nodes[node, PARENT] = parent
    nodes[node, TOKEN] = token
    nodes[node, COUNT] = 1
    nodes[node, FIRST_CHILD] = nodes[node, LAST_CHILD] = -1
    nodes[node, NEXT] = nodes[node, PREVIOUS] = nodes[node, CLASS] = -1
    nodes[node, REST] = -1
    nodes[node, DEPTH] = depth
    nodes[node, CHILDREN] = 0
    return node


@compiled(within=True)
def free_node(forest: Forest, node: int) -> None:
    """Give back a node without children that is nobody's child."""
    forest.nodes[node, NEXT] = forest.state[FREE_NODE]
    forest.state[FREE_NODE] = node
    forest.state[LIVE_NODES] -= 1


@compiled(within=True)
def child_of(forest: Forest, parent: int, token: int) -> int:
    """Return the child of `parent` by `token`, -1 where there is none."""
    nodes = forest.nodes
    if nodes[parent, CHILDREN] == MANY:
        return forest.table[place_of(nodes, forest.table, parent, token)]
    node = nodes[parent, FIRST_CHILD]
    while node >= 0 and nodes[node, TOKEN] != token:
        node = nodes[node, NEXT]
    return node


@compiled(within=True)
def enter(forest: Forest, node: int) -> None:
    """Put a node into the table."""
    nodes = forest.nodes
    place = place_of(nodes, forest.table, nodes[node, PARENT], nodes[node, TOKEN])
    forest.table[place] = node


@compiled()
def withdraw(forest: Forest, node: int) -> None:
    """Take a node out of the table if its parent's children are in there."""
    nodes = forest.nodes
    parent = nodes[node, PARENT]
    if nodes[parent, CHILDREN] == MANY:
        erase(nodes, forest.table, place_of(nodes, forest.table, parent, nodes[node, TOKEN]))
    else:
        nodes[parent, CHILDREN] -= 1


@compiled()
def enter_all(forest: Forest, root: int) -> None:
    """Put the nodes below `root` that belong there into a new table."""
    nodes = forest.nodes
    node = nodes[root, FIRST_CHILD]
    while node >= 0:
        if nodes[nodes[node, PARENT], CHILDREN] == MANY:
            enter(forest, node)
        if nodes[node, FIRST_CHILD] >= 0:
            node = nodes[node, FIRST_CHILD]
            continue
        while nodes[node, NEXT] < 0:
            node = nodes[node, PARENT]
            if node == root:
                return
        node = nodes[node, NEXT]
