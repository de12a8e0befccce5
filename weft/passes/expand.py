"""Operators in other ones: what a device has no kernel for, said by what it has kernels for.

An operator says so itself, by an `expand` rule in the operators that rules are written in. On the
CPU its own kernel is as good; on a device with memory of its own the alternative is a way to the
host and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.dispatch import group
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.symbol import make_symbol
from .rewrite import Rebuild, pass_over, same_nodes


def expand(graph: Graph, outputs: Sequence[Value] | None = None) -> Graph:
    """Return the graph with operators in others, as far as they say how; sizes must be known."""
    made = pass_over(graph, outputs, _visit, expand)
    # A rule may use operators that have rules themselves: each time simpler ones.
    return graph if same_nodes(made, graph) else expand(made)


def _visit(rebuild: Rebuild, node: Node) -> Sequence[Value] | None:
    rule = getattr(node.op, "expand_rule", None)
    if rule is None or any(0 in value.shape for value in node.outputs):
        return None
    graph = rebuild.graph
    operands = [None if x is None else make_symbol(graph, x) for x in node.inputs]
    with graph:
        made = rule(*group(node.op, operands), *node.attrs)
        if made is None:
            return None
        results = made if isinstance(made, tuple) else (made,)
        values = [_value(graph, y) for y in results]
    assert [v.type for v in values] == [v.type for v in node.outputs], node
    return values


def _value(graph: Graph, result: Any) -> Value:
    """Return a result as a value of the graph; what follows from attributes alone is an array."""
    if isinstance(result, np.ndarray):
        return graph.tracer.constant(result).value
    return graph.tracer.value_of(result)
