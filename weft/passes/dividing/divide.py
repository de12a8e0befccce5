"""The graph of one process: operations on parts, and exchanges where something must be whole."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from ...core.dispatch import group as grouped
from ...core.division import Division, Label, RankShare
from ...core.op import find_op
from ...graph.graph import Graph
from ...graph.node import Node, Value
from ...graph.rebuild import Rebuild
from ...graph.scope import outermost_scope
from ...graph.symbol import make_symbol
from .choices import PART_OF, PLACED, DividedAxes, ProcessPlace, is_whole_of_parts, places_in
from .forms import ExchangeChain, ValueForms

ADD = find_op("add")


def divide(graph: Graph) -> Graph:
    """Return what one process runs of a graph whose values are placed; others stay as they are."""
    for place in places_in(graph):
        graph = _DividedGraph(graph, place).graph
    return graph


class _DividedGraph:
    """A graph divided among the processes of one group."""

    def __init__(self, graph: Graph, place: ProcessPlace) -> None:
        self._place = place
        self._choices = DividedAxes(graph, place)
        self._rebuild = Rebuild(graph, graph.outputs)
        self._new = self._rebuild.graph
        self._link = ExchangeChain(self._new, place)
        self._forms: dict[Value, ValueForms] = {}
        self._takers = graph.users()
        self._outputs = set(self._rebuild.outputs)
        with self._new:
            for node in graph.nodes:
                with outermost_scope(node.scope):
                    self._new.tracer.site = node.site
                    self._visit(node)
            for value in self._rebuild.outputs:
                self._rebuild.redirect(value, self._whole(value))
        self._new.tracer.site = None
        self.graph = self._rebuild.finish()

    # -- nodes -------------------------------------------------------------------------------------

    def _visit(self, node: Node) -> None:
        group = self._place.group
        if node.op is PLACED and node.attrs[0] == group:
            self._keep_placement(node, node.attrs[3])
        elif node.op is PART_OF and node.attrs[0] == group:
            (x,) = node.inputs
            self._forms[node.outputs[0]] = ValueForms.of_whole(self._take(x, node.attrs[3]))
        elif is_whole_of_parts(node) and node.attrs[1] == group:
            self._begin_with_parts(node)
        elif node in self._choices.labels:
            self._compute_part(node, self._choices.labels[node])
        elif self._is_linear_in_sums(node):
            self._compute_addend(node)
        elif node.op is ADD and self._opens_sum(node):
            self._add_to_sum(node)
        else:
            self._compute_whole(node)

    def _keep_placement(self, node: Node, axis: int | None) -> None:
        (x,) = node.inputs
        value = self._take(x, axis)
        made = ValueForms.of_whole(value) if axis is None else ValueForms.of_part(value, axis)
        self._forms[node.outputs[0]] = made

    def _begin_with_parts(self, node: Node) -> None:
        """Take the parts that processes have; who needs the whole gathers it."""
        link, x = node.inputs
        assert link is not None
        self._forms[node.outputs[0]] = self._forms[link]
        self._forms[node.outputs[1]] = ValueForms.of_part(self._whole(x), node.attrs[3])

    def _compute_part(self, node: Node, label: Label) -> None:
        division: Division = self._choices.divisions[node]
        operands = [
            None if x is None else self._take(x, _axis(label, labels))
            for x, labels in zip(node.inputs, division.inputs, strict=True)
        ]
        axis = _axis(label, division.output)
        value = self._apply(node, division, self._share(node, label, axis), operands)
        result = node.outputs[0]
        if axis is not None:
            self._forms[result] = ValueForms.of_part(value, axis)
        else:
            self._forms[result] = ValueForms.of_sum(value, division.sums[label])

    def _share(self, node: Node, label: Label, axis: int | None) -> RankShare:
        shape = list(node.outputs[0].shape)
        if axis is not None:
            shape[axis] //= self._place.size
        return RankShare(label, self._place.rank, self._place.size, tuple(shape))

    def _apply(
        self, node: Node, division: Division, share: RankShare, operands: Sequence[Value | None]
    ) -> Value:
        symbols = [None if x is None else make_symbol(self._new, x) for x in operands]
        if division.part is not None:
            made: Any = division.part(share, *grouped(node.op, symbols))
        else:
            made = self._new.tracer.apply(node.op, tuple(symbols), node.attrs)
        value: Value = made.value
        return value

    def _open_sum(self, x: Value | None) -> tuple[Value, Value | None] | None:
        """Return the parts of a sum that only one node takes, so that it need not be complete."""
        if x is None or len(self._takers.get(x, ())) != 1 or x in self._outputs:
            return None
        return self._forms[x].open_sum

    def _is_linear_in_sums(self, node: Node) -> bool:
        """Tell whether a node adds up, or moves, nothing but addends that nobody else takes."""
        if node not in self._choices.divisions or not _is_linear(node.op):
            return False
        found = [self._open_sum(x) for x in node.inputs]
        return all(x is not None and x[1] is None for x in found)

    def _compute_addend(self, node: Node) -> None:
        found = [self._open_sum(x) for x in node.inputs]
        symbols = [make_symbol(self._new, x[0]) for x in found if x is not None]
        made: Any = self._new.tracer.apply(node.op, tuple(symbols), node.attrs)
        self._forms[node.outputs[0]] = ValueForms.of_sum(made.value, "sum")

    def _opens_sum(self, node: Node) -> bool:
        """Tell whether a node adds something to a sum of parts, which may wait for further ones."""
        alike = all(x is not None and x.type == node.outputs[0].type for x in node.inputs)
        return alike and any(self._open_sum(x) is not None for x in node.inputs)

    def _add_to_sum(self, node: Node) -> None:
        parts: list[Value] = []
        bases: list[Value] = []
        for x in node.inputs:
            part, base = self._open_sum(x) or (None, self._whole(x))
            parts += [] if part is None else [part]
            bases += [] if base is None else [base]
        part, base = self._added(parts), self._added(bases)
        assert part is not None
        self._forms[node.outputs[0]] = ValueForms.of_sum(part, "sum", base)

    def _added(self, values: list[Value]) -> Value | None:
        return reduce(self._link.added, values) if values else None

    def _compute_whole(self, node: Node) -> None:
        inputs = [None if x is None else self._whole(x) for x in node.inputs]
        if node.op.communicates and self._link.last is not None:
            inputs[0] = self._link.last  # behind what was inserted before it
        same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        made = self._new.append(node if same else node.rebuilt(inputs))
        if node.op.communicates:
            self._link.last = made.outputs[0]
        for old, new in zip(node.outputs, made.outputs, strict=True):
            self._forms[old] = ValueForms.of_whole(new)
            self._rebuild.redirect(old, new)

    # -- values ------------------------------------------------------------------------------------

    def _take(self, x: Value | None, axis: int | None) -> Value:
        assert x is not None
        return self._forms[x].take(axis, self._link)

    def _whole(self, x: Value | None) -> Value:
        return self._take(x, None)


def _axis(label: Label, labels: Sequence[Label] | None) -> int | None:
    """Return the axis of a label, if an operand has it."""
    return labels.index(label) if labels is not None and label in labels else None


def _is_linear(op: Any) -> bool:
    """Tell whether an operation is linear in all its operands together: a sum of them, say."""
    return bool(op.linear) and set(op.linear) == set(op.inputs)
