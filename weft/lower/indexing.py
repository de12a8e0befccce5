"""Operations that pick one element of a row by an index: which of them become part of a loop.

A row is compared with the index, element by element: the same pass that computes a softmax also
picks the class. Others, which need not see the whole row, have a place rule.
"""

from __future__ import annotations

from ..graph.node import Node

WIDEST = 64  # elements of a row that are compared for the sake of one


def indexed_kind(node: Node) -> str | None:
    """Return "reduce" for picking from the last axis, "spread" for the adjoint, else None."""
    rule = _RULES.get(node.op.name)
    return None if rule is None else rule(node)


def index_bounds(node: Node) -> tuple[int, bool, int | None]:
    """Return the size an index goes into, whether it counts from the end, and what is ignored."""
    wide = node.inputs[0] if indexed_kind(node) == "reduce" else node.outputs[0]
    index = node.inputs[1]
    assert wide is not None
    assert index is not None
    classes = "ignore_index" in node.op.attrs
    ignored = node.attr("ignore_index") if classes else None
    return wide.shape[-1], not classes and index.dtype.kind == "i", ignored


def _pick(node: Node) -> str | None:
    (x, *_) = node.inputs
    assert x is not None
    return "reduce" if node.attr("axis") == len(x.shape) - 1 and x.shape[-1] else None


def _place(node: Node) -> str | None:
    shape = node.outputs[0].shape
    return "spread" if node.attr("axis") == len(shape) - 1 and shape[-1] else None


def _gather(node: Node) -> str | None:
    x, index, *_ = node.inputs
    assert x is not None
    assert index is not None
    fits = _one_of_each_row(x.shape, index.shape, node.attr("dim"))
    return "reduce" if fits and x.shape[-1] <= WIDEST else None


def _gather_adjoint(node: Node) -> str | None:
    index = node.inputs[1]
    assert index is not None
    shape = node.outputs[0].shape
    return "spread" if _one_of_each_row(shape, index.shape, node.attr("dim")) else None


def _one_of_each_row(shape: tuple[int, ...], index: tuple[int, ...], dim: int) -> bool:
    return dim == len(shape) - 1 and index == (*shape[:-1], 1) and shape[-1] > 0


_RULES = {
    "gather": _gather,
    "gather_adjoint": _gather_adjoint,
    "pick_class": _pick,
    "place_class": _place,
}
