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
    contraction = CONTRACTIONS.get(node.op.name)
    if contraction is not None:
        return CALL + 2 * contraction(node, shape_of) / FLOPS_PER_NANOSECOND
    touched = [*node.outputs, *(x for x in node.inputs if x is not None)]
    largest = max((prod(shape_of(value)) for value in touched), default=0)
    return CALL + PER_ELEMENT.get(node.op.kind, OTHERWISE) * largest


def is_cheap(node: Node) -> bool:
    """Tell whether an operation passes over its elements once, rather than contracting them."""
    return node.op.kind in PER_ELEMENT


def _product(node: Node, shape_of: Shapes) -> int:
    """Return the multiplications of x @ y: for each result, as many as x has columns."""
    inner = _shape(node, 0, shape_of)[-1:]
    return prod(shape_of(node.outputs[0])) * prod(inner)


def _windows(node: Node, shape_of: Shapes) -> int:
    """Return the multiplications of a convolution: for each result, a channel of the weight."""
    return prod(shape_of(node.outputs[0])) * prod(_shape(node, 1, shape_of)[1:])


def _spread_windows(node: Node, shape_of: Shapes) -> int:
    """Return those of the gradient of a convolution's input: the same, for each of y."""
    return prod(_shape(node, 0, shape_of)) * prod(_shape(node, 1, shape_of)[1:])


def _correlation(node: Node, shape_of: Shapes) -> int:
    """Return those of the gradient of a convolution's weight: the same, for each of y."""
    return prod(_shape(node, 1, shape_of)) * prod(shape_of(node.outputs[0])[1:])


def _shape(node: Node, position: int, shape_of: Shapes) -> tuple[int, ...]:
    value = node.inputs[position]
    assert value is not None, f"{node.op.name} has no operand {position}"
    return shape_of(value)


CONTRACTIONS: dict[str, Callable[[Node, Shapes], int]] = {
    "matmul": _product,
    "linear": _product,
    "conv": _windows,
    "conv_input_grad": _spread_windows,
    "conv_weight_grad": _correlation,
}
