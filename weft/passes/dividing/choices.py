"""Which axes are divided: placements carried from where they stand through the operations.

As in GSPMD (Xu et al. 2021, arXiv:2105.04663): an operation on a divided operand is divided along
the same axis, so is what its other operands are computed by, and so on, until nothing changes.
Where operands are divided along different axes, the one is kept that makes the least to move.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ...core.dim import is_known
from ...core.division import Division, Label, division_of
from ...core.op import Op, find_op
from ...core.shape import TensorType, size_of
from ...graph.graph import Graph
from ...graph.node import Node, Value

PLACED, PART_OF, EXCHANGE = find_op("placed"), find_op("part_of"), find_op("exchange")
MAX_SWEEPS = 8  # both ways; placements of real programs are carried on in two


class ProcessPlace(NamedTuple):
    """Which process of a group runs the program."""

    group: int
    size: int
    rank: int


def places_in(graph: Graph) -> list[ProcessPlace]:
    """Return the groups that divide something in a graph, in their order."""
    found: dict[ProcessPlace, None] = {}
    for node in graph.nodes:
        if node.op is PLACED or node.op is PART_OF:
            found[ProcessPlace(*node.attrs[:3])] = None
        elif is_whole_of_parts(node):
            found[ProcessPlace(node.attrs[1], node.attrs[2], node.attrs[4])] = None
    return [place for place in found if place.size > 1]


def is_whole_of_parts(node: Node) -> bool:
    """Tell whether a node makes a whole of parts that processes have."""
    return node.op is EXCHANGE and node.attrs[0] == "whole"


class DividedAxes:
    """What is divided among the processes of one group.

    axes     values, with the axis along which each is divided
    labels   nodes, with the label of their division along which each is computed
    """

    def __init__(self, graph: Graph, place: ProcessPlace) -> None:
        self.axes: dict[Value, int] = {}
        self.labels: dict[Node, Label] = {}
        self.divisions = {
            node: found
            for node in graph.nodes
            if (found := _division(node)) is not None and node.op is not PLACED
        }
        self._place = place
        self._fixed: set[Value] = set()
        self._seed(graph)
        self._carry_on(list(self.divisions))

    def _seed(self, graph: Graph) -> None:
        """Take the placements that the program has."""
        group = self._place.group
        for node in graph.nodes:
            if node.op is PLACED and node.attrs[0] == group:
                axis = node.attrs[3]
                self._fixed.add(node.outputs[0])
                if axis is not None:
                    self.axes[node.outputs[0]] = axis
                    self.axes.setdefault(_value(node.inputs[0]), axis)
            elif node.op is PART_OF and node.attrs[0] == group:
                self.axes.setdefault(_value(node.inputs[0]), node.attrs[3])
            elif is_whole_of_parts(node) and node.attrs[1] == group:
                self.axes[node.outputs[1]] = node.attrs[3]
                self._fixed.add(node.outputs[1])

    def _carry_on(self, nodes: list[Node]) -> None:
        for _ in range(MAX_SWEEPS):
            before = len(self.axes), len(self.labels)
            for node in nodes:
                self._choose(node, [*node.inputs], self.divisions[node].inputs)
            for node in reversed(nodes):
                self._choose(node, node.outputs, [self.divisions[node].output])
            if (len(self.axes), len(self.labels)) == before:
                break

    def _choose(self, node: Node, values: Iterable[Value | None], labels: Any) -> None:
        """Divide a node along an axis along which some of its values are."""
        if node not in self.labels:
            found = dict.fromkeys(
                of[self.axes[x]]
                for x, of in zip(values, labels, strict=True)
                if x is not None and of is not None and x in self.axes
            )
            able = [label for label in found if self._can(node, label)]
            if able:
                self.labels[node] = min(able, key=lambda label: self._moved(node, label))
        if node in self.labels:
            self._spread(node, self.labels[node])

    def _spread(self, node: Node, label: Label) -> None:
        """Let what a divided node takes and gives be divided as it is, unless it is already."""
        division = self.divisions[node]
        pairs = [
            *zip(node.inputs, division.inputs, strict=True),
            (node.outputs[0], division.output),
        ]
        for x, labels in pairs:
            if x is not None and labels is not None and label in labels and x not in self._fixed:
                self.axes.setdefault(x, labels.index(label))

    def _can(self, node: Node, label: Label) -> bool:
        division = self.divisions[node]
        if label is None or (label not in division.output and label not in division.sums):
            return False
        if label in division.sums and node.outputs[0].dtype.kind == "b":
            return False  # truth values are not added up
        pairs = [
            *zip(node.inputs, division.inputs, strict=True),
            (node.outputs[0], division.output),
        ]
        sizes = [
            x.shape[labels.index(label)]
            for x, labels in pairs
            if x is not None and labels is not None and label in labels
        ]
        return all(size % self._place.size == 0 for size in sizes)

    def _moved(self, node: Node, label: Label) -> int:
        """Return how many bytes a division makes to move: of operands, and of sums."""
        division, total = self.divisions[node], 0
        for x, labels in zip(node.inputs, division.inputs, strict=True):
            if x is not None and x in self.axes and labels is not None:
                total += _bytes(x) if labels[self.axes[x]] != label else 0
        return total + (2 * _bytes(node.outputs[0]) if label in division.sums else 0)


def _division(node: Node) -> Division | None:
    if not isinstance(node.op, Op) or node.op.outputs != 1:
        return None
    types = [None if x is None else x.type for x in node.inputs]
    known: list[TensorType] = [t for t in (*types, node.outputs[0].type) if t is not None]
    if not all(is_known(t.shape) for t in known):
        return None
    found: Division | None = division_of(node.op, types, node.attrs)
    return found


def _value(x: Value | None) -> Value:
    assert x is not None
    return x


def _bytes(x: Value) -> int:
    return int(size_of(x.shape)) * int(x.dtype.itemsize)
