"""The axes of vmap: which axis of each argument is the batch, and where it goes in each result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.dim import Dim
from ...core.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError
from ...core.op import F
from ...core.shape import normalize_axis
from ...core.tensor import Tensor
from ...core.tree import Structure, TreeMismatchError, container_of, flatten_with_paths

Namer = Callable[[int], str]


def spread_axes(axes: Any, structure: Structure, what: str) -> list[Any]:
    """Return an axis (or None) for each leaf of a tree, of which `axes` is a leading part.

    An int stands for all leaves under its place.
    """
    found: list[Any] = []
    _spread(axes, structure, what, found)
    return found


def _spread(axes: Any, structure: Structure, path: str, found: list[Any]) -> None:
    if axes is None or _is_axis(axes):
        found += [None if axes is None else int(axes)] * structure.count
        return
    container = container_of(axes)
    if structure.container is None or container is None:
        raise ArgumentTypeError(
            f"vmap: {path} must be an int, None, or a tree of them like {structure}. "
            f"Received: {type(axes).__name__} {axes!r:.60}"
        )
    _spread_children(axes, container, structure, path, found)


def _spread_children(
    axes: Any, container: Any, structure: Structure, path: str, found: list[Any]
) -> None:
    data, children = container.split(axes)
    sequences = (list, tuple)
    alike = type(axes) is structure.kind or (
        isinstance(axes, sequences) and structure.kind in sequences
    )
    if not alike or len(children) != len(structure.children):
        raise TreeMismatchError(
            f"vmap: {path} must fit the tree {structure}. Received: {axes!r:.80}"
        )
    if type(axes) is structure.kind:
        children = structure._aligned(data, children, f"vmap: {path}")
    for i, (child, part) in enumerate(zip(children, structure.children, strict=True)):
        label = container.label(i, structure.data if type(axes) is structure.kind else data)
        _spread(child, part, path + label, found)


def _is_axis(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def batch_size(leaves: Sequence[Any], axes: Sequence[Any], name: Namer, axis_size: Any) -> Any:
    """Return the number of examples; raise if the arguments disagree, naming them."""
    sizes: dict[int, Any] = {} if axis_size is None else {-1: _checked_size(axis_size)}
    for i, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is not None:
            sizes[i] = leaf.shape[_axis_of(leaf, axis, i, name)]
    if not sizes:
        raise ArgumentError(
            "vmap: no argument has a batch axis; give at least one in in_axes, or axis_size"
        )
    known = [size for size in sizes.values() if not isinstance(size, Dim)]
    first = known[0] if known else next(iter(sizes.values()))
    if any(size != first for size in sizes.values()):
        shown = ", ".join(
            f"axis_size: {size}" if i < 0 else f"{name(i)} (axis {axes[i]}): {size}"
            for i, size in sizes.items()
        )
        raise ShapeError(
            f"vmap: batch axes must have one size. Received: {shown}", sizes=[*sizes.values()]
        )
    return first


def _checked_size(size: Any) -> Any:
    if isinstance(size, Dim):
        return size
    if not _is_axis(size) or size < 0:
        raise ArgumentError(f"vmap: axis_size must be an int of 0 or more. Received: {size!r:.60}")
    return size


def _axis_of(leaf: Any, axis: int, position: int, name: Namer) -> int:
    try:
        return normalize_axis(axis, leaf.ndim)
    except AxisError as error:
        what = f"vmap: {name(position)} of shape {tuple(leaf.shape)}"
        raise AxisError(f"{what} has no batch axis {axis}: {error}", **error.facts) from None


def to_front(x: Tensor, axis: int) -> Tensor:
    """Return a tensor with its batch axis in front."""
    place = normalize_axis(axis, x.ndim)
    moved: Tensor = x if place == 0 else F.moveaxis(x, place, 0)
    return moved


def from_front(x: Tensor, axis: int, position: int, name: Namer) -> Tensor:
    """Return a result with its batch axis moved from the front to where it is wanted."""
    try:
        place = normalize_axis(axis, x.ndim)
    except AxisError as error:
        raise AxisError(f"vmap: out_axes of {name(position)}: {error}") from None
    moved: Tensor = x if place == 0 else F.moveaxis(x, 0, place)
    return moved


def namer(tree: Any, what: str) -> Namer:
    """Return the function that tells what messages call a leaf, by its position in a tree."""
    return lambda position: f"{what}{flatten_with_paths(tree)[position][0]}"
