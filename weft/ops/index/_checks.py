"""Checks of index operands, shared by every operator that takes one.

Kernels let NumPy find a bad index (that costs nothing) and come here only to explain it: which
value, where it stands, and what would have been allowed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import may_equal
from ...core.dtype import Array
from ...core.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from ...core.operands import tensor_from
from ...core.shape import normalize_axis


def operands(*values: Any) -> tuple[Any, ...]:
    """Return the operands of a composite with lists and numbers as tensors."""
    return tuple(
        v if hasattr(v, "shape") else tensor_from(v, f"operand {i}") for i, v in enumerate(values)
    )


def uncountable(call: Any) -> Any:
    """Refuse vmap, as the batching rule of operators whose results differ in size."""
    raise ArgumentError(
        "how many there are differs between the examples of vmap, and results must have one shape; "
        "use wf.where, wf.sort or a count, or call it outside of vmap"
    )


def check_integer(index: Any, what: str = "index") -> None:
    """Raise unless an index operand holds integers."""
    if index.dtype.kind not in "iu":
        hint = "; use x[mask] or masked_select for a boolean mask" if index.dtype == bool else ""
        raise DTypeError(f"{what} must hold integers. Received: dtype {index.dtype}{hint}")


def check_boolean(mask: Any, what: str = "mask") -> None:
    """Raise unless a mask operand holds truth values."""
    if mask.dtype.kind != "b":
        raise DTypeError(
            f"{what} must hold booleans. Received: dtype {mask.dtype}; compare first, e.g. m != 0"
        )


def check_gradient(g: Any, expected: Any) -> None:
    """Raise unless a gradient has the shape of what was read: code for it writes all of that.

    A size that depends on the values of a mask is None.
    """
    known = [size if n is None else n for n, size in zip(expected, g.shape, strict=False)]
    if len(g.shape) != len(expected) or not may_equal(known, list(g.shape)):
        raise ShapeError(f"g must have shape {tuple(expected)}. Received: {tuple(g.shape)}")


def check_range(
    index: Array, size: int, axis: int | None, what: str = "index", low: int | None = None
) -> None:
    """Raise for the first index outside -size..size-1, or below the lowest that is allowed."""
    least = -size if low is None else low
    _refuse_first((index < least) | (index >= size), index, size, axis, what, low)


def check_non_negative(index: Array, size: int, axis: int | None, what: str = "index") -> None:
    """Raise for the first index below zero, where counting from the end is not meant."""
    if index.dtype.kind == "i" and index.size and np.minimum.reduce(index, axis=None) < 0:
        _refuse_first(index < 0, index, size, axis, what, low=0)


def _refuse_first(
    bad: Array, index: Array, size: int, axis: int | None, what: str, low: int | None = None
) -> None:
    if not bad.any():
        return
    place = tuple(int(i) for i in np.argwhere(bad)[0])
    shown = f"{what}[{', '.join(map(str, place))}] = {index[place]}" if place else f"{what} {index}"
    raise IndexOutOfRange(
        f"{shown} is out of range for {allowed(size, axis, low)}",
        index=int(index[place]),
        axis=axis,
        size=size,
    )


def allowed(size: int, axis: int | None, low: int | None = None) -> str:
    """Return "axis 0 of size 3; use -3..2"."""
    where = f"size {size}" if axis is None else f"axis {axis} of size {size}"
    if size == 0:
        return f"{where}, from which nothing can be taken"
    return f"{where}; use {-size if low is None else low}..{size - 1}"


def flat_axis(x: Any, axis: Any) -> int | None:
    """Return an axis counted from the front, or None, which stands for the flattened tensor."""
    return None if axis is None else normalize_axis(axis, x.ndim)
