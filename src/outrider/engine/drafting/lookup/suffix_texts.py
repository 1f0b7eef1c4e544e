"""How texts grow in a suffix tree and leave it."""

from outrider.engine.compiling import compiled
from outrider.engine.drafting.lookup.child_table import PARENT
from outrider.engine.drafting.lookup.suffix_children import (
    add_child,
    drop_child,
    fall,
    leave_class_from_the_front,
    rise,
)
from outrider.engine.drafting.lookup.suffix_nodes import (
    BASE,
    COUNT,
    DEPTH,
    FIRST_CHILD,
    LENGTH,
    MATCH,
    NEXT,
    POOL_END,
    POOL_TOKEN,
    REST,
    ROOT,
    TEXT,
    Forest,
    child_of,
    free_node,
    new_node,
    withdraw,
)


@compiled(within=True)
def rest_of(forest: Forest, leaf: int) -> int:
    """Return how many tokens of its text belong to a leaf beyond its own."""
    nodes, texts = forest.nodes, forest.texts
    left = texts[nodes[leaf, TEXT], LENGTH] - nodes[leaf, REST]
    return min(forest.depth - nodes[leaf, DEPTH], left)


@compiled(within=True)
def append(forest: Forest, text: int, token: int) -> None:
    """Add a token to a text that has room for it, and up to `depth` nodes to its tree.

    Each substring that ended where the text ended is now one token longer, the empty one too. The
    longer it is the less often it occurs, and from the first leaf on nothing is left to do.
    """
    nodes, texts, pool = forest.nodes, forest.texts, forest.pool
    base, length, root = texts[text, BASE], texts[text, LENGTH], texts[text, ROOT]
    pool[base + length, POOL_TOKEN] = token
    texts[text, LENGTH] = length + 1
    match = 0
    for ended in range(min(length + 1, forest.depth)):
        start = base + length - ended
        node = root if ended == 0 else pool[start, POOL_END]
        if nodes[node, REST] >= 0:
            break
        child = child_of(forest, node, token)
        if child >= 0:
            if nodes[child, REST] >= 0:
                _open(forest, child)
            rise(forest, child)
            match = ended + 1
        elif ended > 0 and nodes[node, COUNT] == 1:
            # The others that came this way have left.
            nodes[node, REST] = length
            nodes[node, TEXT] = text
            child = _shortened(forest, node)
        else:
            child = _add_leaf(forest, node, text, length)
        pool[start, POOL_END] = child
    texts[text, MATCH] = match


@compiled()
def remove(forest: Forest, text: int) -> None:
    """Take all substrings of a text out of its tree, from the first to the last that begins."""
    nodes, pool = forest.nodes, forest.pool
    base, root = forest.texts[text, BASE], forest.texts[text, ROOT]
    for start in range(base, base + forest.texts[text, LENGTH]):
        node = pool[start, POOL_END]
        while node != root:
            parent = nodes[node, PARENT]
            if nodes[node, COUNT] == 1:
                drop_child(forest, node)
                free_node(forest, node)
            else:
                fall(forest, node)
                if nodes[node, COUNT] == 1:
                    only = nodes[node, FIRST_CHILD]
                    if only >= 0 and nodes[only, REST] >= 0:
                        _close(forest, only)
            node = parent
    forest.texts[text, LENGTH] = 0


@compiled()
def clear(forest: Forest, root: int) -> None:
    """Give back all nodes of a tree, its root included; its texts are of no use any more."""
    nodes = forest.nodes
    node = nodes[root, FIRST_CHILD]
    while node >= 0:
        if nodes[node, FIRST_CHILD] >= 0:
            node = nodes[node, FIRST_CHILD]
            continue
        parent, after = nodes[node, PARENT], nodes[node, NEXT]
        withdraw(forest, node)
        leave_class_from_the_front(forest, node)
        free_node(forest, node)
        nodes[parent, FIRST_CHILD] = after
        if after >= 0:
            node = after
        elif parent == root:
            break
        else:
            node = parent
    free_node(forest, root)


@compiled(within=True)
def _add_leaf(forest: Forest, parent: int, text: int, at: int) -> int:
    """Add the leaf whose own token is the one at `at` in `text`."""
    nodes = forest.nodes
    token = forest.pool[forest.texts[text, BASE] + at, POOL_TOKEN]
    leaf = new_node(forest, parent, token, nodes[parent, DEPTH] + 1)
    nodes[leaf, REST] = at + 1
    nodes[leaf, TEXT] = text
    add_child(forest, leaf)
    return leaf


@compiled(within=True)
def _set_end(forest: Forest, text: int, start: int, node: int) -> None:
    forest.pool[forest.texts[text, BASE] + start, POOL_END] = node


@compiled(within=True)
def _open(forest: Forest, leaf: int) -> None:
    """Make an inner node of a leaf, which hands what is left of its text to a leaf below it."""
    nodes = forest.nodes
    text, at = nodes[leaf, TEXT], nodes[leaf, REST]
    more = rest_of(forest, leaf) > 0
    nodes[leaf, REST] = -1
    if more:
        below = _add_leaf(forest, leaf, text, at)
        _set_end(forest, text, at - nodes[leaf, DEPTH], below)


@compiled()
def _close(forest: Forest, leaf: int) -> int:
    """Make a leaf of the parent, which is left with this one: the reverse of `_open`."""
    nodes = forest.nodes
    parent, text, at = nodes[leaf, PARENT], nodes[leaf, TEXT], nodes[leaf, REST] - 1
    drop_child(forest, leaf)
    free_node(forest, leaf)
    nodes[parent, REST] = at
    nodes[parent, TEXT] = text
    _set_end(forest, text, at - nodes[parent, DEPTH], parent)
    return parent


@compiled()
def _shortened(forest: Forest, leaf: int) -> int:
    """Close every leaf that its parent is left with, from `leaf` up; return the last."""
    nodes = forest.nodes
    root = forest.texts[nodes[leaf, TEXT], ROOT]
    while nodes[leaf, PARENT] != root and nodes[nodes[leaf, PARENT], COUNT] == 1:
        leaf = _close(forest, leaf)
    return leaf
