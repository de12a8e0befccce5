"""Along which paths derivatives pass: which results of a graph depend on which of its values.

A path ends at integers, at truth values and at inputs for which an operator has no derivative, such
as that of stop_gradient. Control flow is looked into: its operations tell by `outputs_reached` and
`inputs_leading` which of their results depend on which operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.dtype import is_float
from .node import Node, Value


def reach(nodes: Iterable[Node], sources: Iterable[Value]) -> set[Value]:
    """Return the values that depend on given ones, those included; nodes stand in their order."""
    reached = {value for value in sources if is_float(value.dtype)}
    for node in nodes:
        if reached.isdisjoint(node.inputs):
            continue
        positions = {i for i, x in enumerate(node.inputs) if x in reached}
        reached.update([node.outputs[j] for j in outputs_reached(node, positions)])
    return reached


def lead(nodes: Sequence[Node], targets: Iterable[Value]) -> set[Value]:
    """Return the values on which given ones depend, those included; nodes stand in their order."""
    leading = {value for value in targets if is_float(value.dtype)}
    for node in reversed(nodes):
        if leading.isdisjoint(node.outputs):
            continue
        positions = {j for j, y in enumerate(node.outputs) if y in leading}
        found = [node.inputs[i] for i in inputs_leading(node, positions)]
        leading.update([x for x in found if x is not None])
    return leading


def outputs_reached(node: Node, positions: set[int]) -> set[int]:
    """Return the positions of a node's results that depend on inputs at given positions."""
    if hasattr(node.op, "outputs_reached"):
        reached: set[int] = node.op.outputs_reached(node, positions)
        return reached
    if not any(passes(node, i) for i in positions):
        return set()
    return {j for j, y in enumerate(node.outputs) if is_float(y.dtype)}


def inputs_leading(node: Node, positions: set[int]) -> set[int]:
    """Return the positions of a node's inputs on which results at given positions depend."""
    if hasattr(node.op, "inputs_leading"):
        leading: set[int] = node.op.inputs_leading(node, positions)
        return leading
    return {
        i
        for i, x in enumerate(node.inputs)
        if x is not None and is_float(x.dtype) and passes(node, i)
    }


def passes(node: Node, position: int) -> bool:
    """Tell whether a node's operator has a derivative with respect to an input."""
    op = node.op
    name = op.inputs[min(position, len(op.inputs) - 1)]
    return name in op.partials or name in op.vjps
