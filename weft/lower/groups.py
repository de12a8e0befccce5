"""Group the operations of a graph into kernels.

Nodes are taken in order, each as a group of its own, which is then merged with the groups of what
it takes and with those that read the same values, as long as the result is one loop nest and no
third group must run between the two. What is merged is computed in one go over memory.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ..core.dtype import bool_
from ..core.shape import Shape, size_of
from ..graph.graph import Graph
from ..graph.node import Node, Value, size_variables
from ..graph.special import SOURCES
from .frames import Frame, Levels, frames_for, levels_of
from .kinds import kind_of, reduced_axes, reduced_input
from .products import is_product
from .sequence import Order, Sequenced

MOST_NODES = 96
MOST_OPERANDS = 28
MOST_BETWEEN = 256  # groups that may have to run before two can run as one
MOST_SIBLINGS = 4
MUCH_LARGER = 8  # times as many elements: worth a kernel more


class Group(Sequenced):
    """Operations that become one kernel.

    frame    the loop nest; None for an operation that is no loop
    nodes    in the order of the graph
    level    of each value made here: per element, per row, or per column
    takes    nodes elsewhere whose results are used here
    loaded   values from elsewhere
    last     place in the graph of the last node
    """

    def __init__(self, place: int, node: Node, frame: Frame | None, level: Levels) -> None:
        super().__init__()
        self.frame = frame
        self.nodes = [node]
        self.level = level
        self.last = place
        self.takes = {x.node for x in made_inputs(node)}
        self.loaded = {x for x in node.inputs if x is not None}

    @property
    def domain(self) -> Shape | None:
        """Return the shape of the loop nest, if there is one."""
        return None if self.frame is None else self.frame.domain

    @property
    def split(self) -> int | None:
        """Return how many axes count rows; None if the group knows no rows."""
        return None if self.frame is None else self.frame.split


class Grouping:
    """The groups of a graph, in an order in which they can run.

    first   nodes that run before all others, and together with none of them: what may end the run
            before a state is written follows from these
    """

    def __init__(self, graph: Graph, first: Collection[Node] = ()) -> None:
        self._first = frozenset(first)
        self.of: dict[Node, Group] = {}
        self._place: dict[Node, int] = {}
        self._readers: dict[Value, list[Node]] = {}
        self._users = _users_of(graph)
        self._outputs = set(graph.outputs)
        self._kinds = {node: kind_of(node) for node in graph.nodes}
        self._order: Order[Group] = Order()  # in which the groups so far can run
        sources = graph.size_sources()
        self._tellers = {v: x.node for v, x in sources.items() if x.node.op not in SOURCES}
        for place, node in enumerate(graph.nodes):
            self._place[node] = place
            self._add(node, place)
        self.groups = self._in_order()

    def _add(self, node: Node, place: int) -> None:
        kind = self._kinds[node]
        frame = _first_frame(node, kind)
        level = {} if frame is None else levels_of([node], self._kinds, frame)
        assert level is not None, node
        group = self.of[node] = Group(place, node, frame, level)
        if self._tellers:  # what tells a size that is born in the run comes before who needs it
            told = (self._tellers.get(v) for v in size_variables(node))
            group.takes.update(teller for teller in told if teller is not None)
        self._order.append(group)
        if kind is not None:
            for other in self._candidates(group, node):
                group = self._merged(group, self.of[other]) or group
        for x in node.inputs:
            if x is not None and kind is not None:
                self._readers.setdefault(x, []).append(node)

    def _candidates(self, group: Group, node: Node) -> Iterable[Node]:
        """Return operations to merge with: those it takes from, large ones first, then siblings.

        One of two siblings must be a reduction, whose result is small: another result per element
        is better made where it is needed.
        """
        near = [x for x in made_inputs(node) if not self._is_mask_of_stored(node, x)]
        near.sort(key=lambda x: -size_of(self.of[x.node].domain or ()))
        yield from dict.fromkeys(x.node for x in near)
        small = self._kinds[node] in ("reduce", "column")
        for x in node.inputs:
            if x is not None and x.shape == group.domain != ():
                readers = self._readers.get(x, ())[-MOST_SIBLINGS:]
                yield from (n for n in readers if small or self._kinds[n] == "column")

    def _is_mask_of_stored(self, node: Node, x: Value) -> bool:
        """Tell whether truth values follow from something that is stored anyway.

        To compute them again where they are needed costs less than to store them too.
        """
        if node.outputs[0].dtype != bool_ or self._kinds[node] != "map":
            return False
        users = self._users.get(x.node, ())
        return x in self._outputs or any(self._kinds[user] is None for user in users)

    def _merged(self, group: Group, other: Group) -> Group | None:
        """Return two groups as one, or None if they must stay apart."""
        if other is group or other.frame is None or not self._is_small(group, other):
            return None
        if self._is_first(group) != self._is_first(other):
            return None
        if self._completes_a_product(group, other) or self._completes_a_product(other, group):
            return None
        before, after = (other, group) if other.place < group.place else (group, other)
        for frame in frames_for(other.frame, group.frame):
            nodes, level = self._levels(before, after, frame)
            if level is not None and not self._is_awaited(other, frame, nodes):
                break
        else:
            return None
        if self._delays(group, other) or self._delays(other, group):
            return None
        first = self._needed_first(before, after)
        if first is None:
            return None
        self._order.move_before(before, first)
        return self._take_in(before, after, nodes, frame, level)

    def _levels(self, a: Group, b: Group, frame: Frame) -> tuple[list[Node], Levels | None]:
        """Return the nodes of two groups in the order of the graph, and the levels of their values.

        What follows a group, as the next step of a chain does, changes nothing in it.
        """
        if a.frame == frame and a.last < self._place[b.nodes[0]]:
            return [*a.nodes, *b.nodes], levels_of(b.nodes, self._kinds, frame, a.level)
        nodes = sorted((*a.nodes, *b.nodes), key=self._place.__getitem__)
        return nodes, levels_of(nodes, self._kinds, frame)

    def _completes_a_product(self, group: Group, other: Group) -> bool:
        """Tell whether a group can be computed where a product is, but not with the other in it.

        What a product makes is still in the cache then; sums over its rows can read the result.
        """
        if not any(self._kinds[node] == "column" for node in other.nodes):
            return False
        maps = all(self._kinds[node] in ("map", "view") for node in group.nodes)
        return maps and any(is_product(x.node) and x.shape == group.domain for x in group.loaded)

    def _is_awaited(self, group: Group, frame: Frame, nodes: list[Node]) -> bool:
        """Tell whether others wait for something small that would come with something large.

        They could not run before it any more, so that the large cannot take what they make.
        """
        if group.domain == frame.domain or group.domain is None:
            return False
        members = set(nodes)
        return any(not members.issuperset(self._users.get(n, ())) for n in group.nodes)

    def _delays(self, group: Group, other: Group) -> bool:
        """Tell whether a reduction that others wait for would wait for something far larger.

        A mean is divided by a count, and gradients by the count alone: if it comes with the mean,
        they can no longer be computed where the losses are.
        """
        reduces = any(self._kinds[node] == "reduce" for node in group.nodes)
        members = {*group.nodes, *other.nodes}
        if not reduces or all(members.issuperset(self._users.get(n, ())) for n in group.nodes):
            return False
        size = MUCH_LARGER * max(size_of(group.domain or ()), size_of(other.domain or ()))
        own = {id(group), *map(id, self._taken_groups(group))}
        more = [g for g in self._taken_groups(other) if id(g) not in own]
        return id(other) not in own and any(size_of(g.domain or ()) >= size for g in more)

    def _is_first(self, group: Group) -> bool:
        return group.nodes[0] in self._first

    def _is_small(self, group: Group, other: Group) -> bool:
        if len(group.nodes) + len(other.nodes) > MOST_NODES:
            return False
        loaded = group.loaded | other.loaded
        return sum(self.of.get(x.node) not in (group, other) for x in loaded) <= MOST_OPERANDS

    def _needed_first(self, before: Group, after: Group) -> list[Group] | None:
        """Return the groups behind `before` that `after` needs; None if one of them needs `before`.

        None too if there are too many.
        """
        found = [g for g in self._taken_groups(after) if g.place > before.place]
        seen = set(map(id, found))
        for group in found:  # which grows
            if len(found) > MOST_BETWEEN:
                return None
            for taken in self._taken_groups(group):
                if taken is before:
                    return None
                if taken.place > before.place and id(taken) not in seen:
                    seen.add(id(taken))
                    found.append(taken)
        return found

    def _taken_groups(self, group: Group) -> list[Group]:
        found = {id(g): g for g in map(self.of.__getitem__, group.takes)}
        found.pop(id(group), None)
        return list(found.values())

    def _take_in(
        self, group: Group, other: Group, nodes: list[Node], frame: Frame, level: Levels
    ) -> Group:
        for node in other.nodes:
            self.of[node] = group
        group.frame, group.nodes, group.level = frame, nodes, level
        group.last = self._place[nodes[-1]]
        members = set(nodes)
        group.takes = (group.takes | other.takes) - members
        group.loaded = {x for x in group.loaded | other.loaded if x.node not in members}
        self._order.remove(other)
        return group

    def _in_order(self) -> list[Group]:
        """Return the groups, each after those it takes from, otherwise in the graph's order.

        Those that are to run before all others do, but for single numbers that follow from
        sources (a learning rate): what needs them, as the updates of weights do, can then run where
        its other operands are made.
        """
        groups = {id(group): group for group in self.of.values()}
        waiting = {key: len(self._taken_groups(group)) for key, group in groups.items()}
        users: dict[int, list[Group]] = {}
        for group in groups.values():
            for taken in self._taken_groups(group):
                users.setdefault(id(taken), []).append(group)
        early: set[int] = set()
        ready: list[tuple[bool, bool, int, int]] = []
        order: list[Group] = []

        def release(group: Group) -> None:
            single = group.domain is not None and size_of(group.domain) == 1
            if single and all(id(taken) in early for taken in self._taken_groups(group)):
                early.add(id(group))
            late = not self._is_first(group)
            heapq.heappush(ready, (id(group) not in early, late, group.last, id(group)))

        for key, group in groups.items():
            if not waiting[key]:
                release(group)
        while ready:
            *_, key = heapq.heappop(ready)
            order.append(groups[key])
            for user in users.get(key, ()):
                waiting[id(user)] -= 1
                if not waiting[id(user)]:
                    release(user)
        assert len(order) == len(groups), "groups depend on one another"
        return order


def _users_of(graph: Graph) -> dict[Node, list[Node]]:
    users: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for x in node.inputs:
            if x is not None:
                users.setdefault(x.node, []).append(node)
    return users


def made_inputs(node: Node) -> list[Value]:
    """Return what a node takes that is computed: sources are there from the start."""
    return [x for x in node.inputs if x is not None and x.node.op not in SOURCES]


def _first_frame(node: Node, kind: str | None) -> Frame | None:
    """Return the loop nest of an operation alone; a view has none of its own."""
    if kind in (None, "view"):
        return None
    if kind == "reduce":
        shape = reduced_input(node).shape
        return Frame(shape, len(shape) - len(reduced_axes(node)))
    if kind == "column":
        return Frame(reduced_input(node).shape, len(reduced_axes(node)))
    shape = node.outputs[0].shape
    return Frame(shape, len(shape) - 1 if kind == "spread" else None)


def describe(groups: Sequence[Group]) -> list[Any]:
    """Return the operators of each group, for tests and printing."""
    return [[node.op.name for node in group.nodes] for group in groups]
