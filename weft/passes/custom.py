"""Drop what only differentiation looks at: in a graph that is about to be compiled, it is done."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.custom import CustomGradient
from ..graph.graph import Graph
from ..graph.node import Value, subgraphs
from .rewrite import Rebuild, with_bodies


def drop_custom_gradients(graph: Graph, outputs: Sequence[Value] | None = None) -> Graph:
    """Return the graph with the values that such nodes pass on in their place."""
    if not _has_any(graph):
        return graph
    rebuild = Rebuild(graph, outputs)
    for node in graph.nodes:
        current = rebuild.current(node)
        if isinstance(node.op, CustomGradient):
            _, arguments, results = node.attrs
            passed = current.inputs[arguments : arguments + results]
            rebuild.replace(node, [value for value in passed if value is not None])
        else:
            rebuild.place(node, with_bodies(current, drop_custom_gradients))
    return rebuild.finish()


def _has_any(graph: Graph) -> bool:
    return any(
        isinstance(node.op, CustomGradient) or any(map(_has_any, subgraphs(node)))
        for node in graph.nodes
    )
