"""Common-subexpression elimination: equal nodes become one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..core.op import Op, random
from ..graph.graph import Graph
from ..graph.node import Node, Value, subgraphs
from ..graph.special import CONSTANT
from .rewrite import Rebuild, pass_over


def share_common(graph: Graph, outputs: Sequence[Value] | None = None) -> Graph:
    """Return the graph with nodes of the same operator, inputs and attributes made one.

    Random draws, states, updates and control flow are left alone, and nothing is shared between
    devices. Nodes whose results have sizes known only by running them differ, since each names its
    own sizes.
    """
    seen: dict[Hashable, Node] = {}

    def visit(rebuild: Rebuild, node: Node) -> Sequence[Value] | None:
        if not _is_pure(node):
            return None
        first = seen.setdefault(_key(node), node)
        return None if first is node else first.outputs

    return pass_over(graph, outputs, visit, share_common)


def _is_pure(node: Node) -> bool:
    op = node.op
    return op is CONSTANT or (isinstance(op, Op) and op.kind != random and not subgraphs(node))


def _key(node: Node) -> Hashable:
    """Return what equal nodes have in common."""
    if node.op is CONSTANT:  # the layout too, because it decides the order of sums
        literal = node.attrs[0]
        return CONSTANT, literal, literal.array.strides, node.device
    types = tuple(value.type for value in node.outputs)
    return node.op, node.inputs, exactly(node.attrs), types, node.device


def exactly(attr: Any) -> Hashable:
    """Return an attribute so that only identical ones are equal: 0.0 is not -0.0, 1 not True."""
    if attr.__class__ is tuple:
        return tuple([exactly(item) for item in attr]) if attr else attr
    if attr.__class__ is float:
        return attr.hex()
    key: Hashable = (attr.__class__, attr)
    return key
