"""Operations that pick one element of a row by an index: which of them become part of a loop.

A row is compared with the index, element by element: the same pass that computes a softmax also
picks the class. Others, which need not see the whole row, have a place rule.
"""

from __future__ import annotations

from typing import Any

from ..graph.node import Node

WIDEST = 64  # elements of a row that are compared for the sake of one


def indexed_kind(node: Node) -> str | None:
    """Return "reduce" for picking from the last axis, "spread" for the adjoint, else None."""
    op = node.op
    shapes = [x.shape for x in node.inputs if x is not None]
    if op.picks_rule is not None and op.picks_rule(*shapes, *node.attrs):
        return "reduce" if _is_class(op) or shapes[0][-1] <= WIDEST else None
    puts = op.puts_rule is not None and op.puts_rule(*shapes, *node.attrs)
    return "spread" if puts else None


def index_bounds(node: Node) -> tuple[int, bool, int | None]:
    """Return the size an index goes into, whether it counts from the end, and what is ignored."""
    wide = node.inputs[0] if indexed_kind(node) == "reduce" else node.outputs[0]
    index = node.inputs[1]
    assert wide is not None
    assert index is not None
    classes = _is_class(node.op)
    ignored = node.attr("ignore_index") if classes else None
    return wide.shape[-1], not classes and index.dtype.kind == "i", ignored


def _is_class(op: Any) -> bool:
    """Tell whether indices are classes: of rows that are computed and read as a whole."""
    return "ignore_index" in op.attrs
