"""Rebuild a graph: what passes and edits are made of.

Nodes are frozen and graphs only grow. To change one is to walk over its nodes once, in an order in
which they can run, and to append to a new graph what becomes of each. Nodes that do not change are
shared between both graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.dispatch import group
from ..core.op import Op
from ..core.shape import TensorType
from .graph import Graph
from .node import Node, Value, is_graph, map_attr
from .special import GraphOp


class Rebuild:
    """A new graph that grows out of an old one.

    old       the graph that is read
    outputs   those of its values that the new graph must have
    graph     the new graph
    """

    def __init__(self, old: Graph, outputs: Sequence[Value] | None) -> None:
        self.old = old
        self.outputs = old.results() if outputs is None else list(outputs)
        self.graph = Graph(old.name)
        self._now: dict[Value | None, Value] = {}
        self.graph.reserve_names(node.name for node in old.nodes)  # for the nodes that stay
        self.graph.reserve_names(old.names)

    def value(self, value: Value) -> Value:
        """Return what a value of the old graph is in the new one."""
        return self._now.get(value, value)

    def current(self, node: Node) -> Node:
        """Return a node of the old graph on the values of the new one; the node itself if it can.

        It is not appended yet.
        """
        now = self._now
        if now.keys().isdisjoint(node.inputs):
            return node
        return node.rebuilt([None if x is None else now.get(x, x) for x in node.inputs])

    def place(self, old: Node, new: Node) -> None:
        """Append a node that stands for an old one."""
        self.graph.append(new)
        if new is not old:
            self.replace(old, new.outputs)

    def replace(self, old: Node, values: Sequence[Value]) -> None:
        """Let values of the new graph stand for those of an old node."""
        for before, after in zip(old.outputs, values, strict=True):
            self.redirect(before, after)

    def redirect(self, before: Value, after: Value) -> None:
        """Let a value of the new graph stand for an old one."""
        if before is not after:
            self._now[before] = after

    def values_of(self, node: Node) -> list[Value]:
        """Return what the results of a node of the old graph are in the new one."""
        return [self.value(value) for value in node.outputs]

    def fresh(self, node: Node, op: Any, inputs: Sequence[Value], attrs: Any, types: Any) -> Node:
        """Return a new node on behalf of another: at its line, in its scope, on its device."""
        return Node(
            op,
            inputs,
            attrs,
            types,
            name=self.graph.unique_name(node.name),
            scope=node.scope,
            site=node.site,
            device=node.device,
        )

    def make(self, like: Node, op: Any, *inputs: Any, attrs: tuple[Any, ...] = ()) -> Value:
        """Return the result of a new node; its attributes must be in canonical form."""
        return add_like(self.graph, like, op, inputs, attrs)

    def finish(self) -> Graph:
        """Return the new graph with inputs, outputs, names and aliases."""
        new, now = self.graph, self._now
        new.inputs = [now.get(v, v) for v in self.old.inputs]
        new.outputs = [now.get(v, v) for v in self.outputs]
        new.is_function = self.old.is_function
        new.counts_every_draw = self.old.counts_every_draw
        for name, value in self.old.names.items():
            if now.get(value, value) in new:
                new.names[name] = now.get(value, value)
                new.given_names[new.names[name]] = name
        earlier = {old: now.get(v, v) for old, v in self.old.aliases.items()}
        changed = {old: v for old, v in now.items() if old is not None}
        new.aliases = {old: v for old, v in (earlier | changed).items() if v in new}
        for loop, longer in self.old.extended.items():
            a, b = self.value(loop.outputs[0]).node, self.value(longer.outputs[0]).node
            if a is not b and a in new and b in new:
                new.extended[a] = b
        return new


def add_like(
    graph: Graph, like: Node, op: Any, inputs: Sequence[Any], attrs: tuple[Any, ...]
) -> Value:
    """Return the result of a new node on behalf of another; attributes are in canonical form."""
    kind = op.type_rule(group(op, [None if x is None else x.type for x in inputs]), attrs)
    assert isinstance(kind, TensorType)
    made = graph.add(
        op, inputs, attrs, [kind], scope=like.scope, site=like.site, device=like.device
    )
    return made.outputs[0]


def with_bodies(node: Node, transform: Callable[[Graph], Graph]) -> Node:
    """Return a node with its subgraphs transformed; the node itself if none changes."""
    if isinstance(node.op, (Op, GraphOp)):  # no other bodies; and most nodes are of these
        return node
    attrs = map_attr(lambda item: _body(item, transform) if is_graph(item) else item, node.attrs)
    return node if attrs is node.attrs else node.rebuilt(node.inputs, attrs=attrs)


def _body(body: Graph, transform: Callable[[Graph], Graph]) -> Graph:
    made = transform(body)
    return body if made.outputs == body.outputs and same_nodes(made, body) else made


def same_nodes(a: Graph, b: Graph) -> bool:
    """Tell whether two graphs have the same nodes in the same order."""
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
