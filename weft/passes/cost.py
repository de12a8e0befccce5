"""An estimate of the time an operation takes, in nanoseconds: good enough to compare operations."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ..core.op import elementwise, movement, random, reduction
from ..graph.node import Node, Value, subgraphs
from ..graph.special import GraphOp

Shapes = Callable[[Value], tuple[int, ...]]

CALL = 1500.0  # what any operation costs, whatever its size
PER_ELEMENT = {elementwise: 1.0, movement: 0.5, reduction: 1.0, random: 8.0}
OTHERWISE = 8.0
FLOPS_PER_NANOSECOND = 16.0
PER_BODY_NODE = 100 * CALL  # a loop, of whose trip count and sizes nothing is known


def node_cost(node: Node, shape_of: Shapes) -> float:
    """Return an estimate of the nanoseconds that a node takes."""
    if isinstance(node.op, GraphOp) or node.op.is_view:
        return CALL
    bodies = subgraphs(node)
    if bodies and node.op.kind not in PER_ELEMENT:
        return PER_BODY_NODE * sum(len(body) for body in bodies)
    if node.op.multiplications_rule is not None:
        shapes = [None if x is None else shape_of(x) for x in node.inputs]
        count = node.op.multiplications_rule(*shapes, *node.attrs)
        return CALL + 2 * float(count) / FLOPS_PER_NANOSECOND
    touched = [*node.outputs, *(x for x in node.inputs if x is not None)]
    largest = max((prod(shape_of(value)) for value in touched), default=0)
    return CALL + PER_ELEMENT.get(node.op.kind, OTHERWISE) * largest


def is_cheap(node: Node) -> bool:
    """Tell whether an operation passes over its elements once, rather than contracting them."""
    return node.op.kind in PER_ELEMENT
