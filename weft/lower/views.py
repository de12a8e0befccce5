"""Movement operations as views: the same memory, read by other strides."""

from __future__ import annotations

from ..graph.node import Node
from .storage import View


def views_of(view: View, node: Node) -> list[View] | None:
    """Return the results of an operation as views of its operand, or None if they are not."""
    op = node.op
    if op.identity:
        return [view]
    if op.reshapes:
        made = view.reshaped(node.outputs[0].shape)
        return None if made is None else [made]
    found = None if op.view_rule is None else op.view_rule(view, *node.attrs)
    return [found] if isinstance(found, View) else found
