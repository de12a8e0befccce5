"""Results that are made in parts: concatenation and stacking.

A tensor that is only joined to others is computed into its part of the result, so that joining
costs nothing; one that lies elsewhere is copied by a kernel of its own.
"""

from __future__ import annotations

from ..graph.graph import Graph
from ..graph.node import Node, Value
from .storage import View


def part_views(whole: View, node: Node) -> list[View]:
    """Return where each operand of a join lies in the result."""
    shapes = [x.shape for x in node.inputs if x is not None]
    parts: list[View] = node.op.join_rule(whole, shapes, *node.attrs)
    return parts


def find_homes(graph: Graph) -> dict[Value, Node]:
    """Return the joins into whose results values may be written by the kernels that make them.

    A value has one home, and only if it is joined once; results of the graph have their own memory.
    """
    homes: dict[Value, Node] = {}
    outputs = set(graph.outputs)
    for node in graph.nodes:
        if node.op.join_rule is None:
            continue
        values = [x for x in node.inputs if x is not None]
        for x in values:
            if x not in homes and x not in outputs and values.count(x) == 1:
                homes[x] = node
    return homes
