"""Values and the indices they came from: what PyTorch's `max`, `sort` and the like return."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.errors import ArgumentTypeError
from ..core.op import F
from ..core.shape import normalize_axis


class Pair(NamedTuple):
    """Values chosen along an axis, and where they stood in it."""

    values: Any
    indices: Any


def pair_at(x: Any, indices: Any, axis: int, *, reduced: bool = False) -> Pair:
    """Return the elements of x at indices along an axis, and the indices.

    x and indices have the same sizes in all other dimensions. Gradients go to the elements chosen.
    With `reduced` the axis, of size 1, is left out.
    """
    values = F.gather(x, axis, indices)
    if reduced:
        values, indices = F.squeeze(values, axis), F.squeeze(indices, axis)
    return Pair(values, indices)


def one_axis(name: str, x: Any, dim: Any) -> int:
    """Return the axis of values and indices; raise unless it is exactly one."""
    if dim is None:
        raise ArgumentTypeError(f"{name}: dim= is missing: values and indices are along one axis")
    return normalize_axis(dim, x.ndim, f"{name}: dim")
