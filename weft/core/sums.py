"""Sums of arrays in which rounding errors do not pile up.

NumPy adds pairwise along the axis that lies densest in memory, and one after the other along all
others: the sum of 20 million float32 ones over the first axis of a matrix is 16777216. Here no
number takes part in more than CHAIN additions in a row before the partial sums are added up in the
same way, so that the error grows with the logarithm of the number of terms.

16-bit floats are added up in float32, which is what is returned: who asks rounds, once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtype import float32, is_half
from .shape import broadcast_axes, reduced_shape, size_of

Axes = tuple[int, ...]

CHAIN = 32  # additions in a row, where sums are made step by step
SHORT = 128  # additions in a row that are not worth several steps
SPAN = 4096  # partial sums that stay in the nearest cache
ROW = 64  # elements that are worth a row of their own


def sum_array(x: Any, axis: Axes, keepdims: Any = False) -> Any:
    """Return the sum of an array over axes, counted from the front; of 16-bit floats in float32."""
    if x.itemsize == 2:
        x = widened(x)
    if x.size <= SHORT or x.dtype.kind != "f" or _is_simple(x, axis):
        return np.add.reduce(x, axis=axis, keepdims=keepdims)
    return _in_steps(x, axis).reshape(reduced_shape(x.shape, axis, keepdims))


def sum_array_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Return an array summed over the axes along which `shape` would be broadcast to it."""
    lead = x.ndim - len(shape)
    if x.shape[lead:] == shape:  # the common case: a bias, a per-feature scale
        total = sum_array(x, (0,) if lead == 1 else tuple(range(lead)))
    else:
        total = sum_array(x, broadcast_axes(shape, x.shape), True).reshape(shape)
    return total.astype(x.dtype) if x.itemsize == 2 else total


def widened(x: Any) -> Any:
    """Return 16-bit floats as float32, and other arrays as they are."""
    return x.astype(float32) if is_half(x.dtype) else x


def _is_simple(x: Any, axis: Axes) -> bool:
    """Tell whether few elements make a sum, or whole rows that lie in order do."""
    count = 1
    for a in axis:
        count *= x.shape[a]
    return count <= SHORT or (axis[0] + len(axis) == x.ndim and x.flags.c_contiguous)


def _in_steps(x: Any, axis: Axes) -> Any:
    """Return the sum with reduced axes kept: long rows first, then axis by axis from outside in."""
    inner = _pairwise_axes(x, axis)
    if size_of(x.shape[a] for a in inner) >= ROW:
        x = np.add.reduce(x, axis=inner, keepdims=True)
        axis = tuple(set(axis).difference(inner))
    for a in sorted(axis, key=lambda a: -abs(x.strides[a])):
        x = _sum_along(x, a)
    return x


def _pairwise_axes(x: Any, axis: Axes) -> Axes:
    """Return those of the axes that NumPy's innermost loop runs over, as if they were one."""
    found: list[int] = []
    reach = None
    for a in sorted(range(x.ndim), key=lambda a: (abs(x.strides[a]), -a)):
        step, size = x.strides[a], x.shape[a]
        if size == 1:
            continue
        if a not in axis or step == 0 or step != (reach or step):
            break
        found.append(a)
        reach = step * size
    return tuple(found)


def _sum_along(x: Any, a: int) -> Any:
    """Return the sum along one axis, which is kept, by blocks and then of the blocks' sums."""
    size = x.shape[a]
    if size <= CHAIN:
        return np.add.reduce(x, axis=a, keepdims=True)
    # Elements far apart are added to one another where those along the axis lie close together:
    # so NumPy's inner loop has some length, whatever the shape.
    width = size_of(
        n for n, step in zip(x.shape, x.strides, strict=True) if abs(step) < abs(x.strides[a])
    )
    apart = max(1, min(size // CHAIN, SPAN // width))
    whole = size - size % (CHAIN * apart)
    before, after = x.shape[:a], x.shape[a + 1 :]
    blocks = x[_along(a, 0, whole)].reshape(*before, -1, CHAIN, apart, *after)
    sums = np.add.reduce(blocks, axis=a + 1).reshape(*before, whole // CHAIN, *after)
    total = _sum_along(sums, a)
    if whole < size:
        total += _sum_along(x[_along(a, whole, size)], a)
    return total


def _along(a: int, start: int, stop: int) -> tuple[slice, ...]:
    return (*(slice(None),) * a, slice(start, stop))
