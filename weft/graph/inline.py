"""Copy the nodes of one graph into another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .graph import Graph
from .node import Node, Value
from .special import PLACEHOLDER


def inline(target: Graph, source: Graph, inputs: Sequence[Value]) -> dict[Value, Value]:
    """Append a function's nodes to a graph, on given inputs; return what its values became."""
    mapping = dict(zip(source.inputs, inputs, strict=True))
    return copy_nodes(target, source.nodes, mapping)


def copy_nodes(
    target: Graph, nodes: Iterable[Node], mapping: dict[Value, Value]
) -> dict[Value, Value]:
    """Append copies of nodes whose inputs are in the mapping, which is extended and returned."""
    for node in nodes:
        if node.op is PLACEHOLDER:
            continue
        inputs = [None if x is None else mapping[x] for x in node.inputs]
        name = target.unique_name(node.name)
        copy = target.append(node.rebuilt(inputs, name=name))
        mapping.update(zip(node.outputs, copy.outputs, strict=True))
    return mapping


def function_graph(
    name: str, nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value]
) -> Graph:
    """Return a graph made of nodes that exist: a function from inputs to outputs."""
    graph = Graph(name)
    for node in nodes:
        graph.append(node)
    graph.inputs = list(inputs)
    graph.outputs = list(outputs)
    return graph
