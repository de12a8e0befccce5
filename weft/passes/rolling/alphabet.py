"""Write a graph as a sequence of letters: nodes that may be one step of a loop have the same.

A letter says what a node does, not where its operands come from: in the first trip of a loop they
come from elsewhere than in the others. Numbers in a basic index are left out, since they are what
advances from trip to trip.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Any

import numpy as np

from ...core.op import Op
from ...graph.control.ops import ControlOp
from ...graph.graph import Graph
from ...graph.node import Node, Value, is_graph
from ...graph.special import CONSTANT, PLACEHOLDER
from ...ops.index.getitem import getitem
from ...ops.index.setitem import setitem
from ..cse import exactly
from .repeats import Letters
from .row_index import axes_at

INTEGER = "an integer"
PART = "a part of an axis"


class Alphabet:
    """Letters for nodes, given out in the order in which they are asked for."""

    def __init__(self, apart: Collection[Node] = ()) -> None:
        self._apart = apart  # nodes that must not become part of a loop
        self._letters: dict[Hashable, int] = {}
        self._bodies: dict[int, tuple[Graph, int]] = {}

    def spell(self, nodes: Iterable[Node]) -> Letters:
        """Return nodes as a sequence of letters."""
        return np.array([self.letter(node) for node in nodes], np.int64)

    def letter(self, node: Node) -> int:
        """Return the letter of a node."""
        repeats = isinstance(node.op, (Op, ControlOp)) and node not in self._apart
        return self._number(self._key(node) if repeats else node)

    def _number(self, key: Hashable) -> int:
        return self._letters.setdefault(key, len(self._letters))

    def _key(self, node: Node) -> Hashable:
        missing = tuple([x is None for x in node.inputs])
        types = tuple([y.type for y in node.outputs])
        return node.op, self._attrs(node), missing, types, node.device

    def _attrs(self, node: Node) -> Hashable:
        if node.op is getitem:
            return _form(node, INTEGER, PART)
        if node.op is setitem:
            return _form(node, INTEGER, None)
        return self._exactly(node.attrs)

    def _exactly(self, attr: Any) -> Hashable:
        if is_graph(attr):
            return "body", self._body(attr)
        if attr.__class__ is tuple and any(map(is_graph, attr)):
            return tuple([self._exactly(item) for item in attr])
        return exactly(attr)

    def _body(self, graph: Graph) -> int:
        """Return the same number for bodies that do the same."""
        known = self._bodies.get(id(graph))
        if known is None:
            known = self._bodies[id(graph)] = graph, self._number(self._structure(graph))
        return known[1]

    def _structure(self, graph: Graph) -> Hashable:
        numbers: dict[Value | None, int] = {None: -1}
        for value in graph.inputs:
            numbers[value] = len(numbers)
        lines: list[Hashable] = [tuple([x.type for x in graph.inputs])]
        for node in graph.nodes:
            if node.op is not PLACEHOLDER:
                lines.append((self._whole(node), tuple([numbers[x] for x in node.inputs])))
                for value in node.outputs:
                    numbers[value] = len(numbers)
        return (*lines, tuple([numbers[y] for y in graph.outputs]))

    def _whole(self, node: Node) -> Hashable:
        types = tuple([y.type for y in node.outputs])
        if node.op is CONSTANT:  # the layout too, because it decides the order of sums
            return CONSTANT, node.attrs[0], node.attrs[0].array.strides, node.device
        return node.op, self._exactly(node.attrs), types, node.device


def _form(node: Node, integer: str, part: str | None) -> Hashable:
    """Return a basic index without the numbers in it that may advance."""
    (spec,) = node.attrs
    return tuple([_item(node, i, integer, part) for i in range(len(spec))])


def _item(node: Node, entry: int, integer: str, part: str | None) -> Hashable:
    item = node.attrs[0][entry]
    if item.__class__ is int:
        return integer
    if part is not None and item.__class__ is tuple and item.count(None) < 2:
        x = node.inputs[0]
        assert x is not None
        size = x.shape[axes_at(node.attrs[0], entry, len(x.shape)).taken]
        if all(n is None or n.__class__ is int for n in (*item, size)):
            return part, item[2]
    return exactly(item)
