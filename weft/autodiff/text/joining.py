"""Compute things once: the loop that gives more serves for the same loop that gives less.

Forward mode carries tangents beside the values; reverse mode keeps what its adjoint needs. Either
way the program without the derivative is a part of the one with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...graph.graph import Graph
from ...graph.inline import function_graph
from ...graph.node import Node, Value, is_graph, size_variables
from ...graph.special import PLACEHOLDER

Same = Mapping[Value, Value]


def joined(graph: Graph, outputs: Sequence[Value], same: Same) -> tuple[Graph, list[Value]]:
    """Return a graph in which values are computed where others say that they are, too."""
    made = Graph(graph.name)
    nodes, now = _rebuilt(graph, outputs, same)
    for node in nodes:
        made.append(node)
    return made, now


def _rebuilt(graph: Graph, outputs: Sequence[Value], same: Same) -> tuple[list[Node], list[Value]]:
    nodes = [n for n in graph.nodes if n.op is PLACEHOLDER]
    now = {x: x for n in nodes for x in n.outputs}
    same = {**same, **_extensions(graph)}
    for node in _in_order(graph, [_found(y, same) for y in outputs], same):
        if node.op is PLACEHOLDER:
            continue
        inputs = [None if x is None else now[_found(x, same)] for x in node.inputs]
        attrs = tuple(_body(a, same) if is_graph(a) else a for a in node.attrs)
        nodes.append(node.rebuilt(inputs, attrs=attrs))
        now.update(zip(node.outputs, nodes[-1].outputs, strict=True))
    return nodes, [now[_found(y, same)] for y in outputs]


def _extensions(graph: Graph) -> Same:
    """Return the results of loops that are also those of the same loops with more results."""
    pairs = graph.extended.items()
    return {a: b for old, new in pairs for a, b in zip(old.outputs, new.outputs, strict=False)}


def _found(value: Value, same: Same) -> Value:
    while value in same:
        value = same[value]
    return value


def _body(graph: Graph, same: Same) -> Graph:
    nodes, outputs = _rebuilt(graph, graph.outputs, same)
    return function_graph(graph.name, nodes, graph.inputs, outputs)


def _in_order(graph: Graph, outputs: Sequence[Value], same: Same) -> Iterator[Node]:
    """Yield what outputs need, operands first, else in the order of the graph."""
    place = {node: i for i, node in enumerate(graph.nodes)}
    sizes = graph.size_sources()
    done: set[Node] = set()
    pending = sorted({y.node for y in outputs}, key=place.__getitem__, reverse=True)
    while pending:
        node = pending[-1]
        told = (sizes[v] for v in size_variables(node) if v in sizes)
        taken = [*(x for x in node.inputs if x is not None), *told]
        operands = {_found(x, same).node for x in taken} - done - {node}
        if node in done or not operands:
            pending.pop()
            if node not in done:
                done.add(node)
                yield node
        else:
            pending += sorted(operands, key=place.__getitem__, reverse=True)
