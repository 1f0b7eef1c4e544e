"""The order among siblings: by falling count, and among equals by how they came there.

Drafting follows the first child, so this order decides between continuations that occurred
equally often. A child that occurs for the first time goes to the end. One that occurs once more
joins those with its new count: as their first where it was first among its equals before, else as
their last. One that occurs once less becomes the first of those with its new count. A node that
never had siblings is in no class. Nor are the children of a root: no draft begins there.
"""

from outrider.engine.compiling import compiled
from outrider.engine.drafting.lookup.child_table import PARENT
from outrider.engine.drafting.lookup.suffix_nodes import (
    CHILDREN,
    CLASS,
    COUNT,
    DEPTH,
    FIRST_CHILD,
    FREE_CLASS,
    HEAD,
    LAST_CHILD,
    MANY,
    NEXT,
    PREVIOUS,
    TAIL,
    USED_CLASSES,
    Forest,
    enter,
    withdraw,
)


@compiled(within=True)
def add_child(forest: Forest, node: int) -> None:
    """Make a new node, which occurs once, the last child of its parent."""
    nodes = forest.nodes
    parent = nodes[node, PARENT]
    last = nodes[parent, LAST_CHILD]
    nodes[node, PREVIOUS] = last
    nodes[parent, LAST_CHILD] = node
    if last >= 0:
        nodes[last, NEXT] = node
    else:
        nodes[parent, FIRST_CHILD] = node
    if nodes[parent, CHILDREN] == MANY:
        enter(forest, node)
    else:
        nodes[parent, CHILDREN] += 1
        if nodes[parent, CHILDREN] == MANY:
            _enter_all_of(forest, parent)
    if last < 0 or nodes[node, DEPTH] == 1:
        return
    if nodes[last, CLASS] < 0:
        _found_class(forest, last)
    if nodes[last, COUNT] == 1:
        _join_as_last(forest, node, nodes[last, CLASS])
    else:
        _found_class(forest, node)


@compiled()
def drop_child(forest: Forest, node: int) -> None:
    """Take a node away from its parent."""
    withdraw(forest, node)
    _leave_class(forest, node)
    _unlink(forest, node)


@compiled(within=True)
def rise(forest: Forest, node: int) -> None:
    """Count one occurrence more."""
    nodes = forest.nodes
    count = nodes[node, COUNT] + 1
    if nodes[node, CLASS] < 0:
        nodes[node, COUNT] = count
        return
    head = forest.classes[nodes[node, CLASS], HEAD]
    before = nodes[head, PREVIOUS]
    joins = before >= 0 and nodes[before, COUNT] == count
    _leave_class(forest, node)
    nodes[node, COUNT] = count
    if node != head:
        _unlink(forest, node)
        _link_before(forest, node, head)
        if joins:
            _join_as_last(forest, node, nodes[before, CLASS])
            return
    elif joins:
        joined = nodes[before, CLASS]
        _unlink(forest, node)
        _link_before(forest, node, forest.classes[joined, HEAD])
        _join_as_first(forest, node, joined)
        return
    _found_class(forest, node)


@compiled()
def fall(forest: Forest, node: int) -> None:
    """Count one occurrence less, of two or more."""
    nodes = forest.nodes
    count = nodes[node, COUNT] - 1
    if nodes[node, CLASS] < 0:
        nodes[node, COUNT] = count
        return
    tail = forest.classes[nodes[node, CLASS], TAIL]
    after = nodes[tail, NEXT]
    _leave_class(forest, node)
    nodes[node, COUNT] = count
    if node != tail:
        _unlink(forest, node)
        _link_after(forest, node, tail)
    if after >= 0 and nodes[after, COUNT] == count:
        _join_as_first(forest, node, nodes[after, CLASS])
    else:
        _found_class(forest, node)


@compiled()
def _enter_all_of(forest: Forest, parent: int) -> None:
    node = forest.nodes[parent, FIRST_CHILD]
    while node >= 0:
        enter(forest, node)
        node = forest.nodes[node, NEXT]


@compiled(within=True)
def _found_class(forest: Forest, node: int) -> None:
    classes, state = forest.classes, forest.state
    new = state[FREE_CLASS]
    if new >= 0:
        state[FREE_CLASS] = classes[new, HEAD]
    else:
        new = state[USED_CLASSES]
        state[USED_CLASSES] = new + 1
    classes[new, HEAD] = classes[new, TAIL] = node
    forest.nodes[node, CLASS] = new


@compiled(within=True)
def _join_as_first(forest: Forest, node: int, joined: int) -> None:
    forest.classes[joined, HEAD] = node
    forest.nodes[node, CLASS] = joined


@compiled(within=True)
def _join_as_last(forest: Forest, node: int, joined: int) -> None:
    forest.classes[joined, TAIL] = node
    forest.nodes[node, CLASS] = joined


@compiled(within=True)
def _leave_class(forest: Forest, node: int) -> None:
    """While the node is still linked to its siblings."""
    classes = forest.classes
    left = forest.nodes[node, CLASS]
    if left < 0:
        return
    head, tail = classes[left, HEAD], classes[left, TAIL]
    if head == tail:
        classes[left, HEAD] = forest.state[FREE_CLASS]
        forest.state[FREE_CLASS] = left
    elif node == head:
        classes[left, HEAD] = forest.nodes[node, NEXT]
    elif node == tail:
        classes[left, TAIL] = forest.nodes[node, PREVIOUS]


@compiled()
def leave_class_from_the_front(forest: Forest, node: int) -> None:
    """Where those before it in its class have left already and all others will."""
    classes = forest.classes
    left = forest.nodes[node, CLASS]
    if left >= 0 and classes[left, TAIL] == node:
        classes[left, HEAD] = forest.state[FREE_CLASS]
        forest.state[FREE_CLASS] = left


@compiled(within=True)
def _unlink(forest: Forest, node: int) -> None:
    nodes = forest.nodes
    parent, before, after = nodes[node, PARENT], nodes[node, PREVIOUS], nodes[node, NEXT]
    if before >= 0:
        nodes[before, NEXT] = after
    else:
        nodes[parent, FIRST_CHILD] = after
    if after >= 0:
        nodes[after, PREVIOUS] = before
    else:
        nodes[parent, LAST_CHILD] = before


@compiled(within=True)
def _link_before(forest: Forest, node: int, other: int) -> None:
    nodes = forest.nodes
    before = nodes[other, PREVIOUS]
    nodes[node, PREVIOUS] = before
    nodes[node, NEXT] = other
    nodes[other, PREVIOUS] = node
    if before >= 0:
        nodes[before, NEXT] = node
    else:
        nodes[nodes[node, PARENT], FIRST_CHILD] = node


@compiled(within=True)
def _link_after(forest: Forest, node: int, other: int) -> None:
    nodes = forest.nodes
    after = nodes[other, NEXT]
    nodes[node, NEXT] = after
    nodes[node, PREVIOUS] = other
    nodes[other, NEXT] = node
    if after >= 0:
        nodes[after, PREVIOUS] = node
    else:
        nodes[nodes[node, PARENT], LAST_CHILD] = node
