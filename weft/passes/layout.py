"""Layouts: which operators only look at their input's elements in another way.

A plan gives storage to values; a value that is a view has none of its own and lives in that of its
input, as in NumPy. Where its elements lie is its layout, computed here without any array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..graph.node import Node
from ..graph.special import ASSIGN

Sizes = tuple[int, ...]


class Layout(NamedTuple):
    """Where the elements of a value lie in its storage, counted in elements.

    start     the place of the first element
    strides   the distance of neighbours along each axis
    """

    start: int
    strides: Sizes


def dense(shape: Sizes, start: int = 0) -> Layout:
    """Return the layout of a value that has its storage for itself: row-major, without holes."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return Layout(start, tuple(reversed(strides)))


def is_dense(layout: Layout, shape: Sizes) -> bool:
    """Tell whether the elements lie in row-major order without holes."""
    expected = dense(shape).strides
    return 0 in shape or all(
        size == 1 or a == b for size, a, b in zip(shape, layout.strides, expected, strict=True)
    )


def view_layouts(
    node: Node, layout: Layout, shape: Sizes, attrs: tuple[Any, ...], results: Sequence[Sizes]
) -> list[Layout] | None:
    """Return the layouts of a node's results inside its input's storage; None if it copies.

    layout, shape   of the input
    attrs           of the node, without unknown sizes
    results         the shapes of the results
    """
    if node.op is ASSIGN or node.op.name in SAME:
        return [layout]
    if node.op.name in RESHAPES:
        return _reshaped(layout, shape, results[0])
    looking = VIEWS.get(node.op.name)
    return None if looking is None else _looked_at(node, looking, layout, shape, attrs)


def may_be_view(node: Node) -> bool:
    """Tell whether an operator can return a view of its input."""
    name = node.op.name
    return node.op is ASSIGN or name in SAME or name in RESHAPES or name in VIEWS


def _kernel(node: Node, x: Any, *attrs: Any) -> Any:
    return node.op.kernel(x, *attrs)


def _broadcast(node: Node, x: Any, shape: Any) -> Any:
    return np.broadcast_to(x, shape)  # the kernel copies small ones, which is faster for NumPy


SAME = frozenset({"checkpoint_name", "stop_gradient"})
RESHAPES = frozenset({"reshape", "squeeze", "unsqueeze"})
# Kernels that do nothing but make views, for whatever strides: none of them reads an element.
VIEWS: dict[str, Callable[..., Any]] = {
    "broadcast_to": _broadcast,
    "diagonal": _kernel,
    "flip": _kernel,
    "getitem": _kernel,
    "permute": _kernel,
    "sliding_windows": _kernel,
    "split": _kernel,
    "unbind": _kernel,
}


def _looked_at(
    node: Node, looking: Callable[..., Any], layout: Layout, shape: Sizes, attrs: tuple[Any, ...]
) -> list[Layout]:
    """Ask NumPy: make the view of an array of bytes that has the strides but no memory."""
    array = as_strided(np.empty(1, np.int8), shape, layout.strides)
    made = looking(node, array, *attrs)
    origin = _address(array)
    return [
        Layout(layout.start + _address(view) - origin, view.strides)
        for view in (made if isinstance(made, (list, tuple)) else [made])
    ]


def _address(array: np.ndarray[Any, Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _reshaped(layout: Layout, old: Sizes, new: Sizes) -> list[Layout] | None:
    """Return the strides of a reshaped view, if there is one.

    Axes of both shapes are matched in groups of equal products; a group of the old shape must be
    dense in itself to be cut in another way.
    """
    if is_dense(layout, old):
        return [dense(new, layout.start)]
    kept = [(n, s) for n, s in zip(old, layout.strides, strict=True) if n != 1]
    strides: list[int] = []
    i = j = 0
    while j < len(new):
        product, first, j = new[j], j, j + 1
        group: list[tuple[int, int]] = []
        held = 1
        while held != product:
            if held < product:
                group.append(kept[i])
                held, i = held * kept[i][0], i + 1
            else:
                product, j = product * new[j], j + 1
        if any(s != n2 * s2 for (_, s), (n2, s2) in pairwise(group)):
            return None
        inner = group[-1][1] if group else 1
        strides += [inner * step for step in dense(new[first:j]).strides]
    return [Layout(layout.start, tuple(strides))]
