"""Operations that pick one element of a row by an index: which of them become part of a loop.

A row is compared with the index, element by element: the same pass that computes a softmax also
picks the class. Code does not check indices, so they must come from a feed, which is checked before
the code runs; others stay with their reference kernels.
"""

from __future__ import annotations

from typing import NamedTuple

from ..graph.node import Node, Value
from ..graph.special import PLACEHOLDER
from .views import VIEWS


class IndexCheck(NamedTuple):
    """What the elements of a feed must be: 0 <= i < size, or the index that is ignored."""

    feed: Value
    size: int
    ignored: int | None


def indexed_kind(node: Node) -> str | None:
    """Return "reduce" for picking from the last axis, "spread" for the adjoint, else None."""
    rule = _RULES.get(node.op.name)
    if rule is None or feed_of(node.inputs[1]) is None:
        return None
    return rule(node)


def index_check(node: Node) -> IndexCheck:
    """Return what must hold for the index of a node."""
    feed = feed_of(node.inputs[1])
    assert feed is not None
    wide = node.inputs[0] if indexed_kind(node) == "reduce" else node.outputs[0]
    assert wide is not None
    ignored = node.attr("ignore_index") if "ignore_index" in node.op.attrs else None
    return IndexCheck(feed, wide.shape[-1], ignored)


def feed_of(value: Value | None) -> Value | None:
    """Return the feed whose elements a value consists of, or None."""
    while value is not None and value.node.op.name in VIEWS:
        value = value.node.inputs[0]
    return value if value is not None and value.node.op is PLACEHOLDER else None


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
    return "reduce" if _one_of_each_row(x.shape, index.shape, node.attr("dim")) else None


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
