"""Movement operations as views: the same memory, read by other strides."""

from __future__ import annotations

from collections.abc import Callable

from ..core.shape import size_of
from ..graph.node import Node
from ..ops.index._spec import explicit
from .storage import View

Rule = Callable[[View, Node], View | list[View] | None]


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
    spec = explicit(node.attr("spec"), len(view.shape))
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


def _getitem_adjoint(view: View, node: Node) -> View | None:
    """Return the same elements in another shape, where the index leaves none out."""
    shape = node.outputs[0].shape
    forwards = all(item[2] in (None, 1) for item in node.attr("spec") if isinstance(item, tuple))
    return view.reshaped(shape) if forwards and size_of(shape) == size_of(view.shape) else None


def _flip(view: View, node: Node) -> View:
    axes = node.attr("axis")
    offset, strides = view.offset, list(view.strides)
    for axis in axes:
        offset += max(0, view.shape[axis] - 1) * view.strides[axis]
        strides[axis] = -view.strides[axis]
    return View(view.buffer, view.shape, tuple(strides), offset)


def _split(view: View, node: Node) -> list[View]:
    """Return the parts of a view along an axis."""
    axis, parts, start = node.attr("axis"), list[View](), 0
    for part in node.outputs:
        offset = view.offset + start * view.strides[axis]
        parts.append(View(view.buffer, part.shape, view.strides, offset))
        start += part.shape[axis]
    return parts


def _unbind(view: View, node: Node) -> list[View]:
    axis = node.attr("axis")
    shape, strides = without(view.shape, axis), without(view.strides, axis)
    step = view.strides[axis]
    return [
        View(view.buffer, shape, strides, view.offset + i * step) for i in range(len(node.outputs))
    ]


def without(items: tuple[int, ...], *axes: int) -> tuple[int, ...]:
    """Return the items of all axes but some."""
    return tuple(item for axis, item in enumerate(items) if axis not in axes)


def _diagonal(view: View, node: Node) -> View:
    offset, first, second = (node.attr(name) for name in ("offset", "axis1", "axis2"))
    shape = node.outputs[0].shape
    across = view.strides[first] + view.strides[second]
    start = max(0, -offset) * view.strides[first] + max(0, offset) * view.strides[second]
    strides = (*without(view.strides, first, second), across)
    return View(view.buffer, shape, strides, view.offset + (start if shape[-1] else 0))


def _sliding_windows(view: View, node: Node) -> View:
    axis, step = node.attr("dimension"), node.attr("step")
    strides = list(view.strides)
    strides[axis] *= step
    shape = node.outputs[0].shape
    return View(view.buffer, shape, (*strides, view.strides[axis]), view.offset)


VIEWS: dict[str, Rule] = {
    "broadcast_to": _broadcast,
    "checkpoint_name": _same,
    "diagonal": _diagonal,
    "flip": _flip,
    "sliding_windows": _sliding_windows,
    "split": _split,
    "squeeze": _reshape,
    "unbind": _unbind,
    "unsqueeze": _reshape,
    "getitem_adjoint": _getitem_adjoint,
    "ensure_shape": _same,
    "getitem": _getitem,
    "permute": _permute,
    "positive": _same,
    "reshape": _reshape,
    "stop_gradient": _same,
}
RESHAPES = ("reshape", "squeeze", "unsqueeze")  # of a copy in C order if not of the view
