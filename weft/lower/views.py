"""Movement operations as views: the same memory, read by other strides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.shape import size_of
from ..graph.node import Node
from .storage import View

Rule = Callable[[View, Node], View | None]


def _permute(view: View, node: Node) -> View:
    return view.permuted(node.attr("axes"))


def _reshape(view: View, node: Node) -> View | None:
    return view.reshaped(node.outputs[0].shape)


def _broadcast(view: View, node: Node) -> View:
    return view.broadcast(node.outputs[0].shape)


def _same(view: View, node: Node) -> View:
    return view


def _getitem(view: View, node: Node) -> View | None:
    """Return the part that a basic index selects."""
    spec = _explicit(node.attr("spec"), len(view.shape))
    offset, shape, strides, axis = view.offset, list[int](), list[int](), 0
    for item in spec:
        if item is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = view.shape[axis], view.strides[axis]
        if isinstance(item, int):
            offset += (item + size if item < 0 else item) * stride
        else:
            start, stop, step = slice(*item).indices(size)
            offset += start * stride if range(start, stop, step) else 0
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
        axis += 1
    return View(view.buffer, tuple(shape), tuple(strides), offset)


def _explicit(spec: tuple[Any, ...], ndim: int) -> list[Any]:
    """Return an index with an entry for every axis."""
    full = (None, None, None)
    missing = ndim - sum(item is not None and item is not ... for item in spec)
    items: list[Any] = []
    for item in spec:
        items += [full] * missing if item is ... else [item]
    if ... not in spec:
        items += [full] * missing
    return items


def _getitem_adjoint(view: View, node: Node) -> View | None:
    """Return the same elements in another shape, where the index leaves none out."""
    shape = node.outputs[0].shape
    forwards = all(item[2] in (None, 1) for item in node.attr("spec") if isinstance(item, tuple))
    return view.reshaped(shape) if forwards and size_of(shape) == size_of(view.shape) else None


VIEWS: dict[str, Rule] = {
    "broadcast_to": _broadcast,
    "getitem_adjoint": _getitem_adjoint,
    "ensure_shape": _same,
    "getitem": _getitem,
    "permute": _permute,
    "positive": _same,
    "reshape": _reshape,
    "stop_gradient": _same,
}
